"""Several runs side by side on one GPU: the steps of all in one captured graph.

One small network leaves a GPU idle most of the time; many at once fill it. Runs whose networks are alike are trained as
one network (`stacked`), others each on a stream of its own. A step waits for nothing on the host, so it is captured
once and replayed. Each run has its own random streams, registered with the graph, so that what a run comes
to does not depend on its company.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..data.task import at_hand
from .fit import Curves, Fitting, Saving, Stopped
from .loop import Diverged, Run
from .predict import predict_logits
from .stacked import stacks_of

OF_THIS_THREAD = "thread_local"  # what loaders do in other threads does not concern a capture
EAGER_STEPS = 3  # before a capture: they make what is made lazily (momentum buffers, convolution plans)


class Pack:
    """Runs of as many steps an epoch each, replayed together."""

    def __init__(self, runs: Sequence[Run]) -> None:
        lengths = {run.steps_per_epoch for run in runs}
        if len(lengths) != 1:
            raise ValueError(f"runs of a pack need as many steps an epoch each, not {sorted(lengths)}")
        self.runs = list(runs)
        (self.steps_per_epoch,) = lengths
        self.streams = {id(row): torch.cuda.Stream(row.device) for run in runs for row in run.members}
        self.stacks = stacks_of(runs)
        stacked = {id(run) for stack in self.stacks for run in stack.runs}
        self.others = [run for run in runs if id(run) not in stacked]
        self._eager_steps, self._phases = 0, [run.phase for run in runs]
        self._step: torch.cuda.CUDAGraph | None = None
        self._evaluation: torch.cuda.CUDAGraph | None = None
        self._logits: list[Tensor | None] = []

    def steps(self, count: int | None = None) -> None:
        """So many steps of each run; by default all of an epoch."""
        self._follow_phases()
        for _ in range(self.steps_per_epoch if count is None else count):
            for run in self.runs:
                run.feed.advance()
            if self._step is None:
                self._step_of_all()
                self._eager_steps += 1
                if self._eager_steps == EAGER_STEPS:
                    self._step, _ = self._captured(self._step_of_all)
            else:
                self._step.replay()

    def _follow_phases(self) -> None:
        """Where a run's step is another than in the epoch before, all steps are captured anew."""
        if self._phases != (phases := [run.phase for run in self.runs]):
            self._eager_steps, self._phases, self._step = 0, phases, None

    def validation_logits(self) -> list[Tensor | None]:
        """The logits (N, C) of each run on its validation data, the same tensors at every call; None without such."""
        if not any(len(run.task.valid) for run in self.runs):
            return [None] * len(self.runs)
        if not all(_is_capturable(run) for run in self.runs):
            return self._validation_logits()
        if self._evaluation is None:
            self._validation_logits()
            self._evaluation, self._logits = self._captured(self._validation_logits)
        self._evaluation.replay()
        return self._logits

    def _step_of_all(self) -> None:
        """One step of each run: those that are alike as one, the others each on its own stream."""
        for stack in self.stacks:
            stack.step(self._side_by_side)
        self._side_by_side(Run.step, self.others)

    def _validation_logits(self) -> list[Tensor | None]:
        return self._side_by_side(_validation_logits, self.runs)

    def _side_by_side(self, work: Callable[[Run], Any], runs: Sequence[Run]) -> list[Any]:
        """`work` for each run, on its own stream; the current stream goes on when all are done."""
        main, results = torch.cuda.current_stream(), []
        for run in runs:
            stream = self.streams[id(run)]
            stream.wait_stream(main)
            with torch.cuda.stream(stream):
                results.append(work(run))
        for run in runs:
            main.wait_stream(self.streams[id(run)])
        return results

    def _captured(self, work: Callable[[], Any]) -> tuple[torch.cuda.CUDAGraph, Any]:
        graph = torch.cuda.CUDAGraph()
        for run in self.runs:
            for generator in run.generators:
                graph.register_generator_state(generator)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, capture_error_mode=OF_THIS_THREAD):
            results = work()
        return graph, results


def _validation_logits(run: Run) -> Tensor | None:
    return predict_logits(run, run.task.valid) if len(run.task.valid) else None


def _is_capturable(run: Run) -> bool:
    """Whether the validation images lie on the device; those on disk pass through the host."""
    return at_hand(run.task.valid.images, run.device)


def fit_pack(
    fittings: Sequence[Fitting],
    *,
    on_epoch: Callable[[int, int, Curves], None] = lambda member, epoch, curves: None,
    stop: Callable[[], bool] = lambda: False,
) -> list[Curves | Diverged]:
    """Train all to their ends; a run that diverges leaves the pack and is answered by its `Diverged`.

    `on_epoch` is told the member, its epochs done and its curves. When `stop()` says so, every run writes a checkpoint
    and `Stopped` is raised.
    """
    diverged: dict[int, Diverged] = {}

    def under_way() -> list[int]:
        return [i for i, fitting in enumerate(fittings) if not fitting.ended and i not in diverged]

    saving = Saving()
    while members := under_way():
        pack = Pack([fittings[i].run for i in members])
        while members == under_way():
            diverged |= _epoch(pack, {i: fittings[i] for i in members})
            well = [i for i in members if i not in diverged]
            saving.now_and_then([fittings[i] for i in well])
            for i in well:
                on_epoch(i, fittings[i].epoch, fittings[i].curves)
            if under_way() and stop():
                for i in under_way():
                    fittings[i].save()
                raise Stopped
    return [diverged.get(i, fitting.curves) for i, fitting in enumerate(fittings)]


def _epoch(pack: Pack, fittings: dict[int, Fitting]) -> dict[int, Diverged]:
    """One epoch of all, and what it came to; those that diverged."""
    diverged, began = {}, time.monotonic()
    for fitting in fittings.values():
        fitting.run.begin_epoch(fitting.epoch)
    pack.steps()
    losses: dict[int, float] = {}
    for i, fitting in fittings.items():
        try:
            losses[i] = fitting.run.end_epoch()
        except Diverged as error:
            diverged[i] = error
    trained = time.monotonic()
    for (i, fitting), logits in zip(fittings.items(), pack.validation_logits(), strict=True):
        if i in losses:
            fitting.note(losses[i], logits)
    for fitting in fittings.values():  # what each cost of the time they shared
        fitting.seconds["training"] += (trained - began) / len(fittings)
        fitting.seconds["evaluation"] += (time.monotonic() - trained) / len(fittings)
    return diverged
