"""Blobs: a task made for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...core import register
from ..task import Split
from ._base import Source, as_split

NUM_CLASSES, TRAIN, TEST = 3, 500, 200
SIZE = 8
CENTRES = np.array([[2.0, 3.5], [4.25, 2.2], [4.25, 4.8]])  # an equilateral triangle around the middle
SPREAD = 0.9  # standard deviation of a blob's place: neighbouring classes overlap
WIDTH = 1.2  # standard deviation of the blob itself
NOISE = 20.0


@register("blobs", kind="task", companions={"model": "cnn_small", "batch_size": 32})
def blobs(root: str | Path | None = None) -> Source:
    r"""Bright spots whose place tells the class: 1,500 training and 600 test gray images of 8 × 8, three classes.

    Made for tests, from a fixed seed; `root` is not used. The classes overlap: the best possible accuracy is near
    0.87, and an imbalance moves the border.

    .. math:: x(p) = 200\, e^{-\lVert p - q\rVert^2 / 2 w^2} + \text{noise}, \qquad q \sim N(\mu_y, s^2)

    Reference: none, synthetic.
    """
    rng = np.random.Generator(np.random.PCG64(0))
    return Source(_make(rng, TRAIN), _make(rng, TEST), ("top", "left", "right"))


def _make(rng: np.random.Generator, per_class: int) -> Split:
    labels = np.tile(np.arange(NUM_CLASSES), per_class)
    row, column = (CENTRES[labels] + SPREAD * rng.standard_normal((len(labels), 2))).T[..., None, None]
    y, x = np.mgrid[:SIZE, :SIZE]
    spot = 200 * np.exp(-((y - row) ** 2 + (x - column) ** 2) / (2 * WIDTH**2))
    images = spot + NOISE * rng.standard_normal(spot.shape)
    return as_split(np.rint(images.clip(0, 255))[:, None], labels)
