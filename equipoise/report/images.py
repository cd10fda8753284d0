"""What the scores of a study are made of, image by image: the same test images for every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..analysis.statistics.new_images import ImageScores
from .collected import Run


def image_scores(runs: Mapping[str, Sequence[Run]]) -> ImageScores | None:
    """Of all runs; None where the metric is no mean over images, or runs were judged on unlike test sets."""
    known = [run.images for of_method in runs.values() for run in of_method if run.images is not None]
    if not known or not all(_alike(images.strata, known[0].strata) for images in known):
        return None
    if not all(_alike(images.shares, known[0].shares) for images in known):
        return None
    values = {
        name: [None if run.images is None else run.images.values for run in of_method]
        for name, of_method in runs.items()
    }
    return ImageScores(values, known[0].strata, known[0].shares)


def _alike(a: np.ndarray, b: np.ndarray) -> bool:
    return a is b or np.array_equal(a, b)
