"""Errors on corrupted test images: each corruption in each severity."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from ...analysis.metrics.robustness import mean_corruption_error
from ...data import Split
from ...data.corruptions import CORRUPTIONS, SEVERITIES, corrupt
from ...store.analysis import Corruptions, MethodCorrupted
from ...train import Run
from ...train.predict import predict_logits
from .subjects import Numbers, Subject, by_method, estimate, estimates

IMAGES = 1000  # of which each is corrupted in 75 ways, at most
IN_MEMORY = 2**30  # bytes of corrupted images that are kept for the next run


class Corrupted:
    """The corrupted copies of test images, the same for every run."""

    def __init__(self) -> None:
        self.made: dict[tuple[str, int], Tensor] = {}

    def measure(self, run: Run, split: Split) -> Numbers:
        """Error rate without corruption, and of each corruption at each severity."""
        split = split.dense()
        return {
            "images": len(split),
            "clean": _error(run, split),
            "errors": {
                name: [_error(run, Split(self._images(split, name, s), split.labels)) for s in SEVERITIES]
                for name in CORRUPTIONS
            },
        }

    def _images(self, split: Split, name: str, severity: int) -> Tensor:
        if (name, severity) in self.made:
            return self.made[name, severity]
        assert isinstance(split.images, Tensor)
        images = corrupt(split.images, name, severity)
        if images.numel() * len(CORRUPTIONS) * len(SEVERITIES) <= IN_MEMORY:
            self.made[name, severity] = images
        return images


def _error(run: Run, split: Split) -> float:
    wrong = predict_logits(run, split).argmax(dim=1) != split.labels.to(run.device)
    return float(wrong.double().mean())


def summarize_corruptions(subjects: Sequence[Subject], found: dict[str, Numbers], baseline: str) -> Corruptions:
    """Each method's errors over seeds, and its mCE relative to the baseline's run of the same seed."""
    groups = by_method(subjects)
    reference = {s.seed: found[s.key]["errors"] for s in groups.get(baseline, [])}
    methods = []
    for name, group in groups.items():
        errors = [found[s.key]["errors"] for s in group]
        ratios = [_relative(e, reference.get(s.seed)) for e, s in zip(errors, group, strict=True)]
        methods.append(
            MethodCorrupted(
                name=name,
                clean=estimate([found[s.key]["clean"] for s in group]),
                mce=estimate(ratios),
                by_severity=estimates([_by_severity(found[s.key]) for s in group]),
                errors={c: estimates([e[c] for e in errors]) for c in CORRUPTIONS},
            )
        )
    return Corruptions(found[subjects[0].key]["images"], baseline, tuple(methods))


def _by_severity(numbers: Numbers) -> list[float]:
    """Without corruption, then at each severity the mean over corruptions."""
    return [
        numbers["clean"],
        *(sum(column) / len(CORRUPTIONS) for column in zip(*numbers["errors"].values(), strict=True)),
    ]


def _relative(errors: dict[str, list[float]], reference: dict[str, list[float]] | None) -> float:
    """mCE in percent; not known without a baseline run, or where that makes no error on a corruption."""
    if reference is None or any(sum(rates) == 0 for rates in reference.values()):
        return math.nan
    return mean_corruption_error(errors, reference)
