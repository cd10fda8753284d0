"""What is known of weights that a network was given: which they are, what images they want, under which licence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True)
class Pretraining:
    """`mean` and `std` of each channel, on the scale 0 to 1, by which images are normalized for these weights.

    `size` is the side of the images they were trained on; `licence` the text of their licence, where it is known.
    """

    source: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    size: int | None = None
    licence: str | None = None


# a file of weights does not say what images it wants; most were trained with these
IMAGENET = Pretraining("ImageNet", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), 224)


def for_channels(values: Sequence[float], channels: int) -> tuple[float, ...]:
    """A value for each of three channels as one for grey images: their mean.

    >>> for_channels((0.4, 0.5, 0.6), 1)
    (0.5,)
    """
    return (fmean(values),) if channels == 1 else tuple(values)
