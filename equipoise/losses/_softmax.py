"""The cross-entropy of a softmax over logits that a loss has moved."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from ..core.tracing import is_watched
from ..native.losses import softmax_loss
from ._base import in_one_call

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


def cross_entropy(
    logits: Tensor,
    target: Tensor,
    reduction: str = "none",
    *,
    scale: Tensor | None = None,
    shift: Tensor | None = None,
    at_label: Tensor | None = None,
) -> Tensor:
    """-log p_y for p = softmax(u), u = scale · z + shift, and at the label at_label more: logits (N, C) -> (N,).

    All three are (C,), of the logits' type, and without gradient.
    """

    def formula(z: Tensor, target: Tensor, reduction: str) -> Tensor:
        u = z if scale is None else scale * z
        u = u if shift is None else u + shift
        if at_label is not None:
            u = u.scatter_add(1, target[:, None], at_label.index_select(0, target)[:, None])
        return nll(u, target, reduction)

    return in_one_call(logits, target, reduction, formula, softmax_loss, scale=scale, shift=shift, at_label=at_label)
