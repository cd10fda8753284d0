"""Where the time of a training step goes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch

from .loop import Run
from .pack import OF_THIS_THREAD

WARM_UP = 3
REPEATS = 9


@dataclass(frozen=True)
class StepTimes:
    """Seconds of one step by what is done in them."""

    data: float
    forward: float
    backward: float
    update: float

    @property
    def total(self) -> float:
        return sum(asdict(self).values())


def profile_step(run: Run) -> StepTimes:
    """Times of the parts of a step, medians over a few; the run is trained a little by it, so use one made for this.

    A part's time is that of the step up to its end less that of the step up to its beginning. On a GPU these
    beginnings are captured as a pack captures whole steps: launches that training does not wait for are not counted.
    """
    run.begin_epoch(0)
    run.feed.advance()
    ends = [_median_seconds(run, _up_to(run, parts)) for parts in range(1, 5)]
    return StepTimes(*(max(0.0, b - a) for a, b in zip([0.0, *ends], ends, strict=False)))


def _up_to(run: Run, parts: int) -> Callable[[], None]:
    """The first `parts` of: data, forward, backward, update. Counters go back, so that the epoch never ends."""

    def work() -> None:
        for batch in run.parts():
            if parts > 1:
                terms = run.terms(batch) if run.procedure is None else run.procedure(run, batch)
            if parts > 2:
                run.gradients.add(terms)
        if parts > 2:
            loss = run.gradients.take()
        if parts > 3:
            run.update(loss)
            run.rewind()
        run.optimizer.zero_grad(set_to_none=True)

    return work


def _median_seconds(run: Run, work: Callable[[], None]) -> float:
    on_gpu = run.device.type == "cuda"
    for _ in range(WARM_UP):
        work()
    again = _captured(run, work) if on_gpu and run.capturable else work
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        again()
        if on_gpu:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def _captured(run: Run, work: Callable[[], None]) -> Callable[[], None]:
    graph = torch.cuda.CUDAGraph()
    for generator in run.generators:
        graph.register_generator_state(generator)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, capture_error_mode=OF_THIS_THREAD):
        work()
    return graph.replay
