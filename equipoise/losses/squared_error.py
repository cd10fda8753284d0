"""Squared error."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from ..core import checks, register
from ..native.losses import squared_loss
from ._base import FusedLoss, label_rows
from ._fused import in_one_call

__all__ = ["SquaredErrorLoss", "squared_error_loss"]


@in_one_call(squared_loss, kappa="kappa", magnitude="magnitude", loss_scale="loss_scale", per_class="per_class")
def squared_error_loss(
    logits: Tensor,
    target: Tensor,
    kappa: float = 9.0,
    magnitude: float = 60.0,
    loss_scale: float = 1.0,
    per_class: bool = True,
    *,
    reduction: str = "none",
) -> Tensor:
    """Squared error of each sample: logits (N, C), target (N,) -> (N,). See `SquaredErrorLoss`."""
    # s · Σ_k [k = y ? κ : 1] (z_k - [k = y] M)² as a mean or sum of squares, which PyTorch has one kernel for:
    # weights go under the square by their roots
    root = loss_scale**0.5
    weighed = label_rows(logits, target, root * kappa**0.5, root) * logits
    aims = label_rows(logits, target, root * kappa**0.5 * magnitude, 0)
    if reduction == "none":
        squares = F.mse_loss(weighed, aims, reduction="none")
        return squares.mean(1) if per_class else squares.sum(1)
    if reduction == "mean" and per_class:
        return F.mse_loss(weighed, aims)
    n, c = logits.shape
    total = F.mse_loss(weighed, aims, reduction="sum")
    return total / (c if per_class else n if reduction == "mean" else 1)


@register(
    "squared_error",
    kind="loss",
    year=2021,
    arxiv="2010.16402",
    space={
        "kappa": {"values": (4.0, 8.0, 16.0), "scale": "log"},
        "magnitude": {"values": (1.0, 8.0, 60.0), "scale": "log"},
    },
    examples=({}, {"kappa": 1.0, "magnitude": 1.0}, {"loss_scale": 10.0, "per_class": False}),
)
class SquaredErrorLoss(FusedLoss):
    r"""Squared distance of the logits to M for the label and 0 for the other classes; the label's weighs more.

    .. math:: \ell(z, y) = \frac{s}{C} \Big( \kappa (z_y - M)^2 + \sum_{k \ne y} z_k^2 \Big)

    Args:
        kappa: weight of the label's own error. 9 is what the paper selected on ImageNet (8 on CIFAR-10, 6 on
            CIFAR-100).
        magnitude: M, where the label's logit should be. 60 is what the paper selected on ImageNet (12 on CIFAR-100).
        loss_scale: s, a factor on the whole; the paper's formula has none, its ImageNet runs used 10.
        per_class: divide by the number of classes C, as the paper's formula does; False gives the released code's
            sum, C times larger.

    Differs from the paper: nothing known with the defaults. Predictions take the largest logit, as in the paper. The
    logits are not log-probabilities: with M = 60 their softmax is far too sure, so fit a temperature before reading
    it as a probability.

    Example:
        >>> SquaredErrorLoss(kappa=4.0, magnitude=3.0)(torch.tensor([[2.0, 1.0]]), torch.tensor([0]))
        tensor(2.5000)

    Reference: Kornblith, Chen, Lee, Norouzi. Why Do Better Loss Functions Lead to Less Transferable Features?
    NeurIPS 2021.
    """

    def __init__(
        self,
        kappa: float = 9.0,
        magnitude: float = 60.0,
        loss_scale: float = 1.0,
        per_class: bool = True,
        *,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.kappa = checks.at_least("kappa", kappa, 0)
        self.magnitude = checks.number("magnitude", magnitude)
        self.loss_scale = checks.above("loss_scale", loss_scale, 0)
        self.per_class = checks.truth("per_class", per_class)

    def reduced(self, logits: Tensor, target: Tensor, reduction: str) -> Tensor:
        parameters = self.kappa, self.magnitude, self.loss_scale, self.per_class
        return squared_error_loss(logits, target, *parameters, reduction=reduction)
