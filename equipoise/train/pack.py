"""Several runs side by side on one GPU: the steps of all in one captured graph, each run on a stream of its own.

One small network leaves a GPU idle most of the time; many at once fill it. A step waits for nothing on the host, so it
is captured once and replayed. Each run has its own random streams, registered with the graph, so that what a run comes
to does not depend on its company.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from .fit import Curves, Fitting, Stopped
from .loop import Diverged, Run

EAGER_STEPS = 3  # before a capture: they make what is made lazily (momentum buffers, convolution plans)


class Pack:
    """Runs of as many steps an epoch each, replayed together."""

    def __init__(self, runs: Sequence[Run]) -> None:
        lengths = {run.steps_per_epoch for run in runs}
        if len(lengths) != 1:
            raise ValueError(f"runs of a pack need as many steps an epoch each, not {sorted(lengths)}")
        self.runs = list(runs)
        (self.steps_per_epoch,) = lengths
        self.streams = [torch.cuda.Stream(run.device) for run in runs]
        self.graph: torch.cuda.CUDAGraph | None = None

    def steps(self) -> None:
        """All steps of an epoch, of all runs."""
        left = self.steps_per_epoch
        if self.graph is None:
            eager = min(EAGER_STEPS, left)
            for _ in range(eager):
                self._step_all()
            left -= eager
            self.graph = self._captured()
        for _ in range(left):
            self.graph.replay()

    def _step_all(self) -> None:
        """One step of each run, on its own stream; the current stream goes on when all are done."""
        main = torch.cuda.current_stream()
        for run, stream in zip(self.runs, self.streams, strict=True):
            stream.wait_stream(main)
            with torch.cuda.stream(stream):
                run.step()
        for stream in self.streams:
            main.wait_stream(stream)

    def _captured(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        for run in self.runs:
            for generator in run.streams.generators.values():
                graph.register_generator_state(generator)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            self._step_all()
        return graph


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

    while members := under_way():
        pack = Pack([fittings[i].run for i in members])
        while members == under_way():
            for i in members:
                fittings[i].run.begin_epoch(fittings[i].epoch)
            pack.steps()
            for i in members:
                try:
                    fittings[i].after_epoch(fittings[i].run.end_epoch())
                except Diverged as error:
                    diverged[i] = error
                    continue
                on_epoch(i, fittings[i].epoch, fittings[i].curves)
            if under_way() and stop():
                for i in under_way():
                    fittings[i].save()
                raise Stopped
    return [diverged.get(i, fitting.curves) for i, fitting in enumerate(fittings)]
