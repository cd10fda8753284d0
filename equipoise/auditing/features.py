"""What labels are judged by: features of a pretrained network where one is installed, small pixels otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..core import EquipoiseError
from ..core.progress import Progress
from ..data import ImageFiles
from ..train.embed import BACKBONE, BATCH, Backbone
from .labels import pixel_features

SIZE = 128  # pixels of the images that the network sees
SMALL_PIXELS = "small pixels"


def features_of(
    paths: Sequence[Path], views: NDArray[np.uint8], device: torch.device, progress: Progress
) -> tuple[Tensor, str]:
    """Features (N, d) of images that can be read, and what they are in words."""
    try:
        network = Backbone(BACKBONE, 3, None, device)
        parts: list[Tensor] = []
        for images in ImageFiles(paths, SIZE).split(BATCH):
            parts.append(network(images).cpu())
            progress("describing images", min(len(parts) * BATCH, len(paths)), len(paths))
        return torch.cat(parts).clone(), f"features of {BACKBONE.partition('(')[0]}, trained on ImageNet"
    except EquipoiseError as error:  # no weights here, or a file went away meanwhile
        return pixel_features(views), f"{SMALL_PIXELS}, as a pretrained network could not be used ({error})"
