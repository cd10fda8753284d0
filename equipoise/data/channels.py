"""Mean and standard deviation of the channels of images, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


def channel_mean_std(batches: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    """Of each channel of uint8 images (N, c, h, w), on the scale 0 to 1.

    >>> channel_mean_std([torch.tensor([[[[0, 255]]]], dtype=torch.uint8)])
    (tensor([0.5000]), tensor([0.7071]))
    """
    n, total, square = 0, torch.zeros(()), torch.zeros(())
    for batch in batches:
        pixels = batch.double()  # whole numbers: their sums are exact
        n += pixels.numel() // pixels.shape[1]
        total, square = total + pixels.sum((0, 2, 3)), square + pixels.square().sum((0, 2, 3))
    mean, var = total / n, (square - total.square() / n) / max(n - 1, 1)
    # a channel that never varies would divide by zero
    return (mean / 255).float(), (var.clamp_min(0).sqrt() / 255).clamp_min(1e-3).float()
