"""`Preprocessing`: from an image file to what a network takes, as in training."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..core import EquipoiseError
from ..data import Frame
from ..data.task import frame_of
from ..train import Run

_GREY = (19595, 38470, 7471)  # shares of red, green and blue in a grey level, of 2^16 (ITU-R 601, as Pillow has them)


@dataclass(frozen=True)
class Preprocessing:
    """Images are square, of `frame.size`; `mean` and `std` of each channel are on the scale 0 to 1."""

    frame: Frame
    channels: int
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        if not len(self.mean) == len(self.std) == self.channels:
            raise ValueError(
                f"mean and std must have {self.channels} numbers, one for each channel, not {self.mean} and {self.std}"
            )

    @classmethod
    def of(cls, run: Run) -> Preprocessing:
        """That of the images a run was trained on."""
        images = run.task.train.images
        channels, height, width = images.shape[1:]
        if height != width:
            raise EquipoiseError(f"a model takes square images, and this one was trained on {height} × {width} pixels")
        mean, std = (tuple(values.tolist()) for values in (run.mean, run.std))
        return cls(frame_of(images) or Frame(height), channels, mean, std)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of an image: channels, height, width."""
        return self.channels, self.frame.size, self.frame.size

    def of_files(self, images: Tensor) -> Tensor:
        """Decoded files (N, 3, h, w) with the channels of the network: in colour, or grey."""
        if self.channels == 3:
            return images
        if self.channels != 1:
            raise EquipoiseError(
                f"this model takes images of {self.channels} channels, and files have 1 or 3: give it an array"
            )
        weights = torch.tensor(_GREY, dtype=torch.int32).view(1, 3, 1, 1)
        return ((images.int() * weights).sum(1, keepdim=True) + 2**15 >> 16).to(torch.uint8)

    def checked(self, images: Tensor) -> Tensor:
        """A batch that fits, or an error that says what does."""
        if images.dtype != torch.uint8 or images.dim() != 4 or tuple(images.shape[1:]) != self.shape:
            raise EquipoiseError(
                f"expected uint8 images of shape (N, {', '.join(map(str, self.shape))}), got {images.dtype} of shape "
                f"{tuple(images.shape)}"
            )
        return images
