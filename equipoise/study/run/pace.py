"""How long a study still takes, judged by the epochs and the runs that this call has seen."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from ...core.times import clock
from .workers import Event


@dataclass
class _Run:
    """A run under way: when it was first and last heard of, and what share of it was done then."""

    first: tuple[float, float] | None = None
    last: tuple[float, float] | None = None

    @property
    def seconds(self) -> float | None:
        """Of the whole run, if it goes on as it has gone; None as long as that is not known."""
        if self.first is None or self.last is None or self.last[1] <= self.first[1]:
            return None
        return (self.last[0] - self.first[0]) / (self.last[1] - self.first[1])


class Pace:
    """`total` runs, of which so many were there at the start. Times are those of one times, in seconds."""

    def __init__(self, total: int, done: int) -> None:
        self.total, self.done = total, done
        self.runs: dict[str, _Run] = {}
        self.took: list[float] = []  # by runs that were seen from their beginning to their end
        self.side_by_side = 1

    def event(self, event: Event, at: float) -> None:
        """Count what happened to a job."""
        key = event.job.training.key
        if event.what == "begun":
            self.begun(key, at)
        elif event.what == "epoch":
            self.epoch(key, event.epoch, event.job.training.plan.epochs, at)
        elif event.what in ("done", "had"):
            self.ended(key, at)
        else:
            self.stopped(key)

    def words(self, taken: float, now: float) -> str:
        """Time taken and left, in words."""
        left = self.left(now)
        return f"{clock(taken)} taken, {'?' if left is None else clock(left)} left"

    def begun(self, key: str, at: float) -> None:
        self.runs[key] = _Run(first=(at, 0.0), last=(at, 0.0))
        self.side_by_side = max(self.side_by_side, len(self.runs))

    def epoch(self, key: str, epoch: int, epochs: int, at: float) -> None:
        run, share = self.runs.setdefault(key, _Run()), epoch / epochs
        only_begun = run.last is not None and run.last[1] == 0
        if run.first is None or (only_begun and epoch > 1):  # taken up from a checkpoint
            run.first = (at, share)
        run.last = (at, share)

    def stopped(self, key: str) -> None:
        """It is no longer under way, and is still to do."""
        self.runs.pop(key, None)

    def ended(self, key: str, at: float) -> None:
        """It is done; by another process, if it was not under way here."""
        self.done += 1
        run = self.runs.pop(key, None)
        if run and run.first and run.first[1] == 0:
            self.took.append(at - run.first[0])
        elif run and run.seconds is not None:
            self.took.append(run.seconds)

    def left(self, now: float) -> float | None:
        """Seconds until all are done: what is left of each, shared by as many as go side by side, and never less than
        what is left of the longest. None as long as nothing tells how long a run takes."""
        known = self.took + [run.seconds for run in self.runs.values() if run.seconds is not None]
        if not known:
            return None
        usual = fmean(known)
        under_way = [_left(run, usual, now) for run in self.runs.values()]
        waiting = max(0, self.total - self.done - len(under_way)) * usual
        return max((sum(under_way) + waiting) / self.side_by_side, max(under_way, default=0.0))


def _left(run: _Run, usual: float, now: float) -> float:
    seconds = usual if run.seconds is None else run.seconds
    at, share = run.last or (now, 0.0)
    return max(0.0, (1 - share) * seconds - (now - at))
