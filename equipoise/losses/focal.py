"""Focal loss."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import checks
from ..core import full_precision, register
from ._base import Loss, with_slope


def focal_loss(logits: Tensor, target: Tensor, gamma: float = 2.0) -> Tensor:
    """Focal loss of each sample: logits (N, C), target (N,) -> (N,). See `FocalLoss`."""
    cross_entropy = F.cross_entropy(full_precision(logits), target, reduction="none")
    with torch.no_grad():
        # q = 1 - p; not 0, where q ** gamma has no finite slope for gamma < 1
        q = (-torch.expm1(-cross_entropy)).clamp_min_(torch.finfo(cross_entropy.dtype).tiny)
        fade = q**gamma
        values = fade * cross_entropy
        slope = torch.addcdiv(fade, values * (1 - q), q, value=gamma)  # q^γ + γ q^(γ-1) p ce
    return with_slope(cross_entropy, values, slope)


@register(
    "focal",
    kind="loss",
    year=2017,
    arxiv="1708.02002",
    neutral={"gamma": 0.0},
    space={"gamma": {"values": (0.5, 1.0, 2.0), "scale": "log"}},
)
class FocalLoss(Loss):
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

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        return focal_loss(logits, target, self.gamma)
