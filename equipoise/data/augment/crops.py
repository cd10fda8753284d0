"""Augmentation of images that are kept whole: what begins with a crop cuts it out of all of the image."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..ragged import Ragged
from ..shards.images import ShardImages
from ..task import Images
from ._base import Augment
from .resized_crop import ResizedCrop


@dataclass(frozen=True)
class Crops:
    """The crop that an augmentation begins with, out of these whole images."""

    images: Ragged | ShardImages
    crop: ResizedCrop

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of what is cut out; by default those of the test view."""
        return self.crop.output_size(tuple(self.images.shape[2:]))

    def draw(self, index: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """A random box for each of the images at `index`, where the index is: (n, 5), see `Ragged.cut`."""
        sides = self.images.sides(index.to(self.images.device)).to(index.device)
        return self.crop.boxes(sides[:, :1], sides[:, 1:], generator)

    def __call__(self, index: Tensor, boxes: Tensor) -> Tensor:
        """These boxes of the images at `index`, scaled: (n, 3, *size)."""
        return self.images.cut(index, boxes, self.size, self.crop.mode, self.images.largest_box(self.crop.aspect))


def crops_of(images: Images, augment: Augment) -> Crops | None:
    """The crops that an augmentation begins with, where it does and images are kept whole."""
    crop = augment.crop
    if crop is None or not (isinstance(images, Ragged) or (isinstance(images, ShardImages) and images.frame.whole)):
        return None
    return Crops(images, crop)


def augmented(augment: Augment, images: Images, index: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """The images at `index`, augmented; they must be at hand."""
    crops = crops_of(images, augment)
    if crops is None:
        return augment(images[index], generator)
    return augment.after_crop(crops(index, crops.draw(index, generator)), generator)
