"""The logarithm of a softmax, and of the probability it gives to labels."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from ..core.tracing import is_watched

FEW = 16  # classes; with fewer, PyTorch's softmax of rows does not fill a vector register and takes six times as long
NO_LABEL = -(2**31)  # PyTorch skips samples whose label is this; its default, -100, should be an error


def log_softmax(logits: Tensor) -> Tensor:
    """log p: (N, C) -> (N, C)."""
    if not is_watched() and logits.is_cpu and logits.shape[1] < FEW:
        return logits.t().log_softmax(0).t()
    return logits.log_softmax(1)


def nll(logits: Tensor, target: Tensor, reduction: str = "none") -> Tensor:
    """-log p_y: (N, C) -> (N,) or a number."""
    return of_labels(log_softmax(logits), target, reduction)


def of_labels(log_p: Tensor, target: Tensor, reduction: str = "none") -> Tensor:
    """-log p_y of log p (N, C): (N,) or a number."""
    return F.nll_loss(log_p, target, reduction=reduction, ignore_index=NO_LABEL)
