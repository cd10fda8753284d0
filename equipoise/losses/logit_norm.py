"""Logit normalization."""

from __future__ import annotations

import torch
from torch import Tensor

from ..core import checks, register
from ..native.losses import softmax_loss
from ._base import FusedLoss
from ._fused import in_one_call
from ._softmax import nll

__all__ = ["LogitNormLoss", "logit_norm_loss"]

SMALLEST_NORM = 1e-6  # the released code's guard: the square root of 1e-12


def normalized_logits(logits: Tensor, tau: float = 0.04) -> Tensor:
    """Each row brought to length 1 / tau: (N, C) -> (N, C)."""
    return logits / (tau * torch.linalg.vector_norm(logits, dim=1, keepdim=True).clamp_min(SMALLEST_NORM))


@in_one_call(softmax_loss, tau="tau")
def logit_norm_loss(logits: Tensor, target: Tensor, tau: float = 0.04, *, reduction: str = "none") -> Tensor:
    """Cross-entropy of normalized logits: logits (N, C), target (N,) -> (N,). See `LogitNormLoss`."""
    return nll(normalized_logits(logits, tau), target, reduction)


@register(
    "logit_norm",
    kind="loss",
    year=2021,
    arxiv="2010.16402",
    space={"tau": {"values": (0.04, 0.08, 0.16), "scale": "log"}},
    examples=({}, {"tau": 1.0}, {"tau": 0.001}),
)
class LogitNormLoss(FusedLoss):
    r"""Cross-entropy of logits brought to one length, so that only their direction counts.

    .. math:: \ell(z, y) = -\log \mathrm{softmax}\!\left(\frac{z}{\tau \lVert z \rVert}\right)_y

    Args:
        tau: temperature: the logits get the length 1 / tau. 0.04 is what the paper selected on ImageNet (0.14 on
            CIFAR-10, 0.11 on CIFAR-100).

    Differs from the paper: nothing known. As in the released code the norm is not taken below 1e-6, and the head's
    bias is part of the logits.

    Example:
        >>> LogitNormLoss(tau=1.0)(torch.tensor([[3.0, 4.0]]), torch.tensor([0]))
        tensor(0.7981)

    Reference: Kornblith, Chen, Lee, Norouzi. Why Do Better Loss Functions Lead to Less Transferable Features?
    NeurIPS 2021.
    """

    def __init__(self, tau: float = 0.04, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.tau = checks.above("tau", tau, 0)

    def link(self, logits: Tensor) -> Tensor:
        return normalized_logits(logits, self.tau)

    def reduced(self, logits: Tensor, target: Tensor, reduction: str) -> Tensor:
        return logit_norm_loss(logits, target, self.tau, reduction=reduction)
