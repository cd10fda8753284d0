"""Errors on corrupted test images: each corruption in each severity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from torch import Tensor

from ...analysis.metrics.robustness import mean_corruption_error
from ...data import Split, imagenet_c_folders, load_further
from ...data.corruptions import CORRUPTIONS, SEVERITIES, corrupt
from ...store.analysis import Corruptions, MethodCorrupted
from ...train import Run
from ...train.predict import predict_logits
from .subjects import Numbers, Subject, by_method, columns_over_seeds, drawn, over_seeds

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


class ImageNetC:
    """The corrupted images of ImageNet-C, at most so many of each corruption at each severity."""

    def __init__(self, path: str, images: int) -> None:
        self.path, self.images = path, images
        self.folders = imagenet_c_folders(path)
        self.splits: dict[tuple[str, int], Split] = {}

    @property
    def settings(self) -> Numbers:
        return {"folder": self.path, "images": self.images}

    def measure(self, run: Run) -> Numbers:
        """The same numbers as those of `Corrupted`; images are read a batch at a time."""
        clean = drawn(run.task.test, self.images)
        return {
            "images": len(clean),
            "clean": _error(run, clean),
            "errors": {name: [self._error(run, name, s) for s in SEVERITIES] for name in CORRUPTIONS},
        }

    def _error(self, run: Run, name: str, severity: int) -> float:
        if (name, severity) not in self.splits:  # folders are looked through once for all runs
            further = load_further(self.folders[name, severity], run.task)
            self.splits[name, severity] = drawn(further.split, self.images)
        return _error(run, self.splits[name, severity])


def checked_imagenet_c(path: str) -> str:
    """The same folder wherever the command is given from; an error if it is not complete."""
    imagenet_c_folders(path)
    return str(Path(path).expanduser().resolve())


def _error(run: Run, split: Split) -> float:
    wrong = predict_logits(run, split).argmax(dim=1) != split.labels.to(run.device)
    return float(wrong.double().mean())


def summarize_corruptions(subjects: Sequence[Subject], numbers: dict[str, Numbers], baseline: str) -> Corruptions:
    """Each method's errors over seeds, and its mCE relative to the baseline's run of the same seed."""
    reference = {s.seed: numbers[s.key]["errors"] for s in by_method(subjects).get(baseline, [])}
    ratios = {s.key: _relative(numbers[s.key]["errors"], reference.get(s.seed)) for s in subjects}
    return Corruptions(numbers[subjects[0].key]["images"], baseline, _methods(subjects, numbers, ratios))


def summarize_imagenet_c(subjects: Sequence[Subject], numbers: dict[str, Numbers], folder: str) -> Corruptions:
    """The same on ImageNet-C, with the mCE relative to AlexNet's published errors."""
    ratios = {s.key: mean_corruption_error(numbers[s.key]["errors"], "alexnet") for s in subjects}
    return Corruptions(numbers[subjects[0].key]["images"], "AlexNet", _methods(subjects, numbers, ratios), folder)


def _methods(
    subjects: Sequence[Subject], numbers: dict[str, Numbers], ratios: dict[str, float]
) -> tuple[MethodCorrupted, ...]:
    methods = []
    for name, group in by_method(subjects).items():
        errors = [numbers[s.key]["errors"] for s in group]
        methods.append(
            MethodCorrupted(
                name=name,
                clean=over_seeds([numbers[s.key]["clean"] for s in group]),
                mce=over_seeds([ratios[s.key] for s in group]),
                by_severity=columns_over_seeds([_by_severity(numbers[s.key]) for s in group]),
                errors={c: columns_over_seeds([e[c] for e in errors]) for c in CORRUPTIONS},
            )
        )
    return tuple(methods)


def _by_severity(numbers: Numbers) -> list[float]:
    """Without corruption, then at each severity the mean over corruptions."""
    return [
        numbers["clean"],
        *(fmean(column) for column in zip(*numbers["errors"].values(), strict=True)),
    ]


def _relative(errors: dict[str, list[float]], reference: dict[str, list[float]] | None) -> float:
    """mCE in percent; not known without a baseline run, or where that makes no error on a corruption."""
    if reference is None or any(sum(rates) == 0 for rates in reference.values()):
        return math.nan
    return mean_corruption_error(errors, reference)
