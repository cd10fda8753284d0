"""The cross-entropy of a softmax, by the quickest way PyTorch has for the size at hand."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from ._base import ClosedForm, by_closed_form

FEW = 16  # classes; with fewer, PyTorch's softmax of rows does not fill a vector register and takes six times as long
MANY = 200_000  # logits; from here on a pass over them costs a CPU more than the calls from Python that spare it
NO_LABEL = -(2**31)  # PyTorch skips samples whose label is this; its default, -100, should be an error


def log_softmax(logits: Tensor) -> Tensor:
    """log p: (N, C) -> (N, C)."""
    return logits.t().log_softmax(0).t() if _few(logits) else logits.log_softmax(1)


def softmax(logits: Tensor, out: Tensor | None = None) -> Tensor:
    """p: (N, C) -> (N, C), perhaps in the memory of `out`."""
    return logits.t().softmax(0).t() if _few(logits) else torch.softmax(logits, 1, out=out)


def _few(logits: Tensor) -> bool:
    return logits.shape[1] < FEW and logits.is_cpu and not torch.compiler.is_compiling()


def many(logits: Tensor, times: int = 1) -> bool:
    """Whether a closed form that spares autograd some passes saves time; the fewer they are, the more `times`."""
    return logits.is_cpu and logits.numel() >= times * MANY


def same(logits: Tensor) -> Tensor:
    """The logits as they are."""
    return logits


def softmax_cost(
    logits: Tensor, target: Tensor, move: Callable[[Tensor], Tensor] = same, share: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Cross-entropy (N, 1) of z = move(logits), and p - share · [k = y] (N, C), which is its slope if `share` is 1."""
    y, z = target[:, None], move(logits)
    p = softmax(z, out=z if logits.is_cpu and move is not same else None)
    p_y = p.gather(1, y)
    if logits.is_cpu and len(p_y) and float(p_y.amin()) > torch.finfo(p_y.dtype).tiny:
        cost = p_y.log().neg_()
    else:  # log Σ e^z = max z - log max p, and the largest probability cannot underflow
        z = move(logits)
        cost = (z.amax(1, True) - z.gather(1, y)) - p.amax(1, True).log()
    return cost, p.scatter_add_(1, y, torch.full_like(cost, -share))


def cross_entropy(
    logits: Tensor,
    target: Tensor,
    reduction: str = "none",
    move: Callable[[Tensor], Tensor] = same,
    factor: Tensor | float = 1.0,
    times: int = 1,
) -> Tensor:
    """-log p_y for p = softmax(move(logits)): logits (N, C), target (N,) -> (N,) or a number.

    `factor` is the derivative of `move`, one number or one for each class; for `times` see `many`. Differentiable any
    number of times.
    """

    def formula(z: Tensor, reduction: str = "none") -> Tensor:
        return F.nll_loss(log_softmax(move(z)), target, reduction=reduction, ignore_index=NO_LABEL)

    def closed(z: Tensor) -> ClosedForm:
        return ClosedForm(*softmax_cost(z, target, move), factor)

    if many(logits, times):
        return by_closed_form(logits, reduction, closed, formula)
    return formula(logits, reduction)


def shifted_cross_entropy(logits: Tensor, target: Tensor, shift: Tensor, reduction: str = "none") -> Tensor:
    """Cross-entropy of `logits + shift`; `shift` is (C,) and has no gradient."""
    return cross_entropy(logits, target, reduction, lambda z: z + shift, times=4)
