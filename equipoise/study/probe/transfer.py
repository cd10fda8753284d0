"""What a run's features are worth to other data: a linear classifier on them, trained on another task."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...analysis import linear_probe
from ...analysis.statistics.correlation import rank_correlation
from ...data import Split, Task, load_task, resize
from ...store.analysis import Against, Matrix, MethodAccuracy, Transfer
from ...train import Run, predict
from .subjects import Numbers, Subject, by_method, drawn, over_seeds

VALID = 0.2  # of the other task's training images, on which the penalty is chosen


@dataclass(frozen=True)
class Other:
    """Another task, at most so many images of each of its parts."""

    name: str
    images: int

    @property
    def part(self) -> str:
        """The name of what is kept of a run."""
        return f"transfer-{hashlib.sha256(self.name.encode()).hexdigest()[:8]}"

    @property
    def settings(self) -> Numbers:
        return {"task": self.name, "images": self.images}

    def measure(self, run: Run) -> Numbers:
        """Accuracy on the other task's test images of a linear classifier on the features of `run`."""
        task = other_task(self.name)
        parts = [features_of(run, drawn(split, self.images)) for split in (task.train, task.valid, task.test)]
        (train_x, train_y), (valid_x, valid_y), (test_x, test_y) = parts
        with warnings.catch_warnings():  # where rounding leaves a gap to the minimum it is kept with the result
            warnings.simplefilter("ignore", UserWarning)
            probe = linear_probe(train_x, train_y, valid_x, valid_y)
        right = probe.predict(test_x) == test_y
        return {
            "accuracy": float(np.mean(right)),
            "lambda": probe.lam,
            "gap": float(np.max(probe.gaps)),
            "train": len(train_y) + len(valid_y),
            "test": len(test_y),
        }


@lru_cache(maxsize=2)
def other_task(name: str) -> Task:
    """The task with a part held out; an error if its files are not there."""
    return load_task(name, valid=VALID)


def features_of(run: Run, split: Split) -> tuple[np.ndarray, np.ndarray]:
    """Features (N, d) of the run's network and labels (N,), the images in the network's own size and channels."""
    shape: Any = run.task.test.images.shape
    images = split.dense().images
    assert isinstance(images, Tensor)
    fitted = Split(fit_images(images, shape[1], (shape[2], shape[3])).to(run.device), split.labels.to(run.device))
    arrays = predict(run, fitted)
    return arrays["features"].astype(np.float32), arrays["labels"]


def fit_images(images: Tensor, channels: int, size: tuple[int, int]) -> Tensor:
    """Images (N, c, h, w) as uint8 with so many channels, in this size; grey is the mean of the channels.

    >>> fit_images(torch.tensor([[[[10]], [[20]], [[60]]]], dtype=torch.uint8), 1, (1, 2))
    tensor([[[[30, 30]]]], dtype=torch.uint8)
    """
    if images.shape[1] != channels:
        grey = images.float().mean(1, keepdim=True).round().to(torch.uint8)
        images = grey.expand(-1, channels, -1, -1)
    return resize(images, size)


def summarize_transfer(
    subjects: Sequence[Subject],
    numbers: Mapping[str, Numbers],
    other: Other,
    separation: Mapping[str, float],
    own_accuracy: Mapping[str, float],
) -> Transfer:
    """Each method's accuracies, over seeds with an interval.

    Beside them, of each run by its key: the class separation of its features, and its accuracy on its own test set.
    """
    first, groups = numbers[subjects[0].key], by_method(subjects)
    methods = (
        MethodAccuracy(name, over_seeds([numbers[s.key]["accuracy"] for s in group])) for name, group in groups.items()
    )

    def against(values: Mapping[str, float]) -> Against:
        points: dict[str, Matrix] = {
            name: tuple((values[s.key], numbers[s.key]["accuracy"]) for s in group if s.key in values)
            for name, group in groups.items()
        }
        return Against(points, rank_correlation(points), len(points))

    sizes = first["train"], first["test"]
    return Transfer(other.name, *sizes, tuple(methods), against(separation), against(own_accuracy))
