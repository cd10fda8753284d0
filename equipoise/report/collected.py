"""What a report shows of a study: estimates, runs, methods. Plain frozen data; `collect` fills it from a store."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..analysis import MethodResult, Verdict
from ..analysis.statistics.priority import ALL_METRICS, ImageValues
from ..analysis.statistics.sequential import Rounds
from ..store import Opened, Record, StudyHead

TOP5_CLASSES = 100  # from so many classes on the top-5 accuracy is of interest too


@dataclass(frozen=True)
class Estimate:
    """A mean over `n` seeds, its 95 % interval and its standard error; NaN where there is nothing to tell it from."""

    n: int
    mean: float
    low: float
    high: float
    error: float = math.nan

    @property
    def half(self) -> float:
        return (self.high - self.low) / 2


class Bin(NamedTuple):
    """Test samples whose confidence lies in one of the bins: how many, the sum of confidences, how many were right."""

    n: int
    confidence: float
    right: int

    @property
    def sure(self) -> float:
        """The mean confidence."""
        return self.confidence / self.n

    @property
    def accuracy(self) -> float:
        return self.right / self.n


@dataclass(frozen=True)
class Premise:
    """Something that the verdict takes for granted: whether it `holds`, None where that is not known, and how it was
    checked or why it was not."""

    name: str
    holds: bool | None
    words: str


@dataclass(frozen=True)
class Run:
    """One method with one seed: `state` is "finished", "failed", "missing", or "left out" of later rounds.

    `problem` says what went wrong.

    `confusion` counts test samples by (true class, predicted class), where there are any; `images` has what each of
    them adds to the study's metric, where that is a mean over images.
    """

    method: str
    seed: int
    key: str
    state: str
    record: Record | None = None
    metrics: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(ALL_METRICS, math.nan))
    per_class: tuple[float, ...] = ()
    confusion: Mapping[tuple[int, int], int] = field(default_factory=dict)
    reliability: tuple[Bin, ...] = ()
    problem: str = ""
    images: ImageValues | None = field(default=None, compare=False, repr=False)

    @property
    def finished(self) -> bool:
        return self.state == "finished"


@dataclass(frozen=True)
class Method:
    """A row of the report. `index` chooses its colour (0: the baseline), `rank` counts from 0, the best mean.

    `marks` warn that the comparison is not of like with like; `differences` are (seed, score - baseline's score);
    `changes` are the dials of the recipe at which it differs: (dial, the baseline's choice, this one's);
    `leads` are the metrics at which it is in the first of several tiers;
    `per_class` and `confusion` are empty if the method has other classes than the baseline, or no finished run;
    `confusion` and `reliability` are sums over the finished runs.
    """

    name: str
    index: int
    rank: int
    result: MethodResult
    recipe: Mapping[str, Any]
    runs: tuple[Run, ...]
    marks: tuple[str, ...]
    changes: tuple[tuple[str, str, str], ...]
    leads: frozenset[str]
    estimates: Mapping[str, Estimate]
    differences: tuple[tuple[int, float], ...]
    per_class: tuple[Estimate, ...]
    confusion: Mapping[tuple[int, int], int]
    reliability: tuple[Bin, ...]
    curves: Mapping[str, tuple[Estimate, ...]]

    @property
    def is_baseline(self) -> bool:
        return self.index == 0

    @property
    def parameters(self) -> int | None:
        return next((run.record.parameters for run in self.runs if run.record and run.finished), None)

    def scores(self, metric: str) -> list[float]:
        """One for each seed; NaN for a run that is not finished."""
        return [run.metrics[metric] for run in self.runs]


@dataclass(frozen=True)
class Collected(StudyHead):
    """A study as far as it has come. `methods` are grouped by tier, and within a tier the best mean comes first."""

    methods: tuple[Method, ...]
    verdict: Verdict
    class_names: tuple[str, ...]
    class_counts: tuple[int, ...]
    opened: Opened | None
    rounds: Rounds | None = None  # of a study that adds seeds in rounds
    premises: tuple[Premise, ...] = ()

    @property
    def answer(self) -> tuple[str, ...]:
        """The verdict in two sentences: its headline, then its best method or why nothing is claimed."""
        return tuple(self.verdict.sentences()[:2])

    @property
    def knows_new_images(self) -> bool:
        """Whether anything is said of images that are not in the test set."""
        return any(math.isfinite(method.result.new_low) for method in self.methods)

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(run for method in self.methods for run in method.runs)

    @property
    def planned(self) -> tuple[Run, ...]:
        """All but those that a study in rounds has no need of."""
        return tuple(run for run in self.runs if run.state != "left out")

    @property
    def finished(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.finished)

    @property
    def failed(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.state == "failed")

    @property
    def missing(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.state == "missing")

    @property
    def records(self) -> tuple[Record, ...]:
        """Of all runs, each once: two methods may share a run."""
        return tuple({run.key: run.record for run in self.runs if run.record}.values())

    @property
    def reference(self) -> Method:
        """The baseline."""
        return next(method for method in self.methods if method.is_baseline)

    @property
    def by_size(self) -> list[int]:
        """The classes, from the one with most training images to the one with fewest."""
        return sorted(range(len(self.class_names)), key=lambda c: (-self.class_counts[c], c))

    @property
    def curve_names(self) -> tuple[str, ...]:
        """The curves any method has, the usual ones first; top-5 accuracy among them where classes are many."""
        usual = ["train_loss", "valid_loss", f"valid_{self.metric}"]
        usual += ["valid_top5"] if len(self.class_names) >= TOP5_CLASSES else []
        usual.append("valid_balanced_accuracy")
        there = {name for method in self.methods for name in method.curves}
        return tuple([name for name in dict.fromkeys(usual) if name in there] + sorted(there - set(usual)))
