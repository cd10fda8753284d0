"""Focal loss."""

from __future__ import annotations

import torch
from torch import Tensor

from ..core import checks, register
from ..native.losses import softmax_loss
from ._base import FusedLoss, reduce
from ._fused import in_one_call
from ._softmax import nll

__all__ = ["FocalLoss", "focal_loss"]


@in_one_call(softmax_loss, gamma="gamma")
def focal_loss(logits: Tensor, target: Tensor, gamma: float = 2.0, *, reduction: str = "none") -> Tensor:
    """Focal loss of each sample: logits (N, C), target (N,) -> (N,). See `FocalLoss`."""
    cost = nll(logits, target)
    q = -torch.expm1(-cost)  # 1 - p_y
    if gamma < 1:
        q = q.clamp_min(torch.finfo(q.dtype).tiny)  # at 0 a power below 1 has no finite slope
    return reduce(q**gamma * cost, reduction)


@register(
    "focal",
    kind="loss",
    year=2017,
    arxiv="1708.02002",
    neutral={"gamma": 0.0},
    space={"gamma": {"values": (0.5, 1.0, 2.0), "scale": "log"}},
    examples=({}, {"gamma": 0.0}, {"gamma": 0.5}, {"gamma": 1.0}, {"gamma": 5.0}),
)
class FocalLoss(FusedLoss):
    r"""Cross-entropy that fades for samples already classified well.

    .. math:: \ell(z, y) = -(1 - p_y)^\gamma \log p_y, \qquad p = \mathrm{softmax}(z)

    Args:
        gamma: how fast easy samples fade; 0 gives cross-entropy. The paper uses 2 and tries 0 to 5;
            LDAM-DRW's comparison uses 1.

    Differs from the paper: softmax over C classes instead of one sigmoid for each class (that form is
    `sigmoid_focal`), and no alpha: class weights are a weighting, so that they combine with every loss.

    Example:
        >>> FocalLoss(gamma=2.0)(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
        tensor(0.0018)

    Reference: Lin, Goyal, Girshick, He, Dollár. Focal Loss for Dense Object Detection. ICCV 2017.
    """

    def __init__(self, gamma: float = 2.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.gamma = checks.at_least("gamma", gamma, 0)

    def reduced(self, logits: Tensor, target: Tensor, reduction: str) -> Tensor:
        return focal_loss(logits, target, self.gamma, reduction=reduction)
