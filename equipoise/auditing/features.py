"""What labels are judged by: features of a pretrained network where one is installed, small pixels otherwise."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..core import EquipoiseError
from ..core.files import features_folder
from ..core.progress import Progress
from ..data import ImageFiles
from ..data.content import content_of
from ..train.embed import BACKBONE, BATCH, Backbone
from .labels import pixel_features

SIZE = 128  # pixels of the images that the network sees
SMALL_PIXELS = "small pixels"
ENOUGH = 2 * BATCH  # images whose time tells how long all will take: of the first ones alone a network is slow


class _TooSlow(EquipoiseError):
    """Describing all images would take longer than there is time."""


def features_of(
    paths: Sequence[Path],
    digests: Sequence[bytes],
    views: NDArray[np.uint8],
    device: torch.device,
    progress: Progress,
    seconds: float | None = None,
) -> tuple[Tensor, str]:
    """Features (N, d) of images that can be read, and what they are in words.

    Those of a network are kept, by the contents of the files. Where it would take more than `seconds`, it is not used.
    """
    try:
        network = Backbone(BACKBONE, 3, None, device)
        images, content = ImageFiles(paths, SIZE, digests), content_of([f"{SIZE} pixels"], [([], b"".join(digests))])
        limited = progress if seconds is None else _limited(progress, seconds)
        features = network.kept_features(images, features_folder(), content, limited)
        return features, f"features of {BACKBONE.partition('(')[0]}, trained on ImageNet"
    except EquipoiseError as error:  # no weights here, a file went away meanwhile, or no time
        return pixel_features(views), f"{SMALL_PIXELS}, as a pretrained network could not be used ({error})"


def _limited(progress: Progress, seconds: float) -> Progress:
    """`progress` that ends the work by `_TooSlow` as soon as it is seen to take longer."""
    began = time.monotonic()

    def told(stage: str, done: int, total: int) -> None:
        progress(stage, done, total)
        needed = (time.monotonic() - began) / done * total
        if done >= ENOUGH and needed > seconds:
            raise _TooSlow(f"it would take {needed:.0f} s for {total:,} images, and has {seconds:.0f} s")

    return told
