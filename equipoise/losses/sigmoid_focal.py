"""Sigmoid focal loss."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from ..core import checks, register
from ..native.losses import sigmoid_loss
from ._base import FusedLoss, label_rows, reduce
from ._fused import in_one_call

__all__ = ["SigmoidFocalLoss", "sigmoid_focal_loss"]


@in_one_call(sigmoid_loss, gamma="gamma")
def sigmoid_focal_loss(logits: Tensor, target: Tensor, gamma: float = 2.0, *, reduction: str = "none") -> Tensor:
    """Sigmoid focal loss of each sample: logits (N, C), target (N,) -> (N,). See `SigmoidFocalLoss`."""
    wrong = label_rows(logits, target, -1, 1) * logits  # the paper's -z^t: the larger, the more wrong
    fade = (gamma * F.logsigmoid(wrong)).exp()  # the logarithm of a sigmoid has a slope where the sigmoid is 0
    return reduce((fade * F.softplus(wrong)).sum(1), reduction)


@register(
    "sigmoid_focal",
    kind="loss",
    year=2017,
    arxiv="1708.02002",
    companions={"head": "linear(prior='others')"},
    space={"gamma": {"values": (0.5, 1.0, 2.0), "scale": "log"}},
    examples=({}, {"gamma": 0.0}, {"gamma": 0.5}, {"gamma": 1.0}, {"gamma": 1.7}),
)
class SigmoidFocalLoss(FusedLoss):
    r"""One yes-or-no cross-entropy for each class, fading where the answer is already right; summed over classes.

    .. math:: \ell(z, y) = -\sum_k (1 - p_k)^\gamma \log p_k, \qquad p_k = \sigma(z^t_k), \quad
        z^t_k = z_k \text{ if } k = y \text{ else } -z_k

    Args:
        gamma: how fast easy answers fade; 0 gives the sigmoid loss. The paper uses 2; the class-balanced loss
            paper tries 0.5, 1 and 2.

    Differs from the paper: no alpha, since class weights are a weighting; the sum over classes is divided by the
    number of samples, each being one positive. The head's bias should start at -log(C - 1), probability 1/C, as in
    the class-balanced loss paper. Its released modulator returns 0 instead of 1 for very negative logits of the
    label; this one does not.

    Example:
        >>> SigmoidFocalLoss(gamma=2.0)(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
        tensor(0.1751)

    Reference: Lin, Goyal, Girshick, He, Dollár. Focal Loss for Dense Object Detection. ICCV 2017. Cui, Jia, Lin,
    Song, Belongie. Class-Balanced Loss Based on Effective Number of Samples. CVPR 2019.
    """

    def __init__(self, gamma: float = 2.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.gamma = checks.at_least("gamma", gamma, 0)

    def link(self, logits: Tensor) -> Tensor:
        return F.logsigmoid(logits)

    def reduced(self, logits: Tensor, target: Tensor, reduction: str) -> Tensor:
        return sigmoid_focal_loss(logits, target, self.gamma, reduction=reduction)
