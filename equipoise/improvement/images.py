"""Held-out images in folders, as batches of inputs and labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from ..core import EquipoiseError, checks
from ..core.escaping import visible
from ..data import DataError, Frame, ImageFiles, normalize
from ..data.augment._operations import grey
from ..data.channels import channel_mean_std
from ..data.sources._files import files_of_classes
from ..data.walk import image_files, subfolders
from ..models.pretraining import IMAGENET

LARGEST_IN_MEMORY = 2**31  # bytes: smaller sets are decoded once, larger ones at every pass


@dataclass(frozen=True)
class Images:
    """How image files become inputs.

    Args:
        size: side of the square that the network sees, in pixels.
        resize: images are scaled so that their short side is this before the middle square is cut out of them; by
            default `size`.
        mean: of each channel, on the scale 0 to 1; with a single number images become grey.
        std: likewise.
        batch_size: images at a time.

    >>> Images(224, resize=256).channels
    3
    """

    size: int
    resize: int | None = None
    mean: tuple[float, ...] = IMAGENET.mean
    std: tuple[float, ...] = IMAGENET.std
    batch_size: int = 128

    def __post_init__(self) -> None:
        Frame(self.size, self.resize)
        checks.whole("batch_size", self.batch_size, 1)
        if len(self.mean) not in (1, 3) or len(self.mean) != len(self.std):
            raise ValueError(
                f"mean and std must have a number for each of 1 or 3 channels, not {self.mean} and {self.std}"
            )
        for mean, std in zip(self.mean, self.std, strict=True):
            checks.number("mean", mean)
            checks.above("std", std, 0)

    @property
    def channels(self) -> int:
        return len(self.mean)

    @property
    def frame(self) -> Frame:
        return Frame(self.size, self.resize)

    def pixels(self, files: ImageFiles) -> Iterator[Tensor]:
        """uint8 images (n, channels, size, size), a batch at a time."""
        for part in files.split(self.batch_size):
            yield part if self.channels == 3 else grey(part).to(torch.uint8)

    def inputs(self, pixels: Tensor) -> Tensor:
        return normalize(pixels, torch.tensor(self.mean), torch.tensor(self.std))


@dataclass(frozen=True)
class FolderBatches:
    """(inputs, target) batches of image files, in order, as often as one likes."""

    files: ImageFiles
    labels: Tensor
    images: Images
    class_names: tuple[str, ...] = ()
    _kept: list[Tensor] = field(default_factory=list)

    def pixels(self) -> Iterator[Tensor]:
        if self.files.numel() > LARGEST_IN_MEMORY:
            yield from self.images.pixels(self.files)
            return
        if not self._kept:
            self._kept.extend(self.images.pixels(self.files))
        yield from self._kept

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for pixels, target in zip(self.pixels(), self.labels.split(self.images.batch_size), strict=True):
            yield self.images.inputs(pixels), target


def folder_batches(folder: Path, images: Images, class_names: Sequence[str] | None = None) -> FolderBatches:
    """The images of a folder with one folder for each class; classes are in the order of `class_names`, or of theirs.

    Of `class_names` some may have no folder here; a folder that is none of them is an error.
    """
    there = class_folders(folder)
    names = tuple(there if class_names is None else class_names)
    files, labels = files_of_classes(folder, folder, names, others="folders that are no class")
    return FolderBatches(ImageFiles([f.path for f in files], images.frame), torch.from_numpy(labels), images, names)


def class_folders(folder: Path) -> list[str]:
    """The names of the folders in a folder, in order."""
    names = subfolders(_checked(folder), folder)
    if len(names) < 2:
        raise DataError(f"{visible(folder)} must have one folder of images for each class, and two of them at least")
    return names


def unlabelled_batches(folder: Path, images: Images) -> FolderBatches:
    """All images of a folder and of the folders in it; their labels are of no use."""
    paths = [file.path for file in image_files(_checked(folder), folder)]
    if not paths:
        raise DataError(f"{visible(folder)} has no images")
    return FolderBatches(ImageFiles(paths, images.frame), torch.zeros(len(paths), dtype=torch.long), images)


def class_counts_of(folder: Path, class_names: Sequence[str]) -> list[int]:
    """How many images each class has in a folder with one folder for each class."""
    there = class_folders(folder)
    return [len(image_files(folder / name, folder)) if name in there else 0 for name in class_names]


def measured(batches: FolderBatches) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel of the images, on the scale 0 to 1."""
    mean, std = channel_mean_std(batches.pixels())
    return tuple(mean.tolist()), tuple(std.tolist())


def _checked(folder: Path) -> Path:
    if not folder.is_dir():
        raise EquipoiseError(f"{visible(folder)} is not a folder")
    return folder
