"""What one training step sees, and what a network gives."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Batch(NamedTuple):
    """What one step sees. A mixed sample has two hard labels: `lam` belongs to `target`, the rest to `other`."""

    inputs: Tensor
    target: Tensor
    other: Tensor | None = None
    lam: Tensor | None = None


class Output(NamedTuple):
    """What a network gives: `features` (N, d) feed the head, `feature_map` (N, c, h, w) is before pooling."""

    logits: Tensor
    features: Tensor | None = None
    feature_map: Tensor | None = None


def full_precision(x: Tensor) -> Tensor:
    """`x` in float32 at least: losses and statistics of half-precision values are computed there."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
