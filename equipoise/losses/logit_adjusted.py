"""Logit-adjusted loss."""

from __future__ import annotations

import torch
from torch import Tensor

from ..core import checks, register
from ..native.losses import softmax_loss
from ._base import FusedLoss
from ._fused import in_one_call
from ._softmax import nll

__all__ = ["LogitAdjustedLoss", "logit_adjusted_loss"]


@in_one_call(softmax_loss, shift="tau_log_prior")
def logit_adjusted_loss(logits: Tensor, target: Tensor, *, tau_log_prior: Tensor, reduction: str = "none") -> Tensor:
    """Logit-adjusted loss: logits (N, C), target (N,), tau · log prior (C,) -> (N,). See `LogitAdjustedLoss`."""
    return nll(logits + tau_log_prior, target, reduction)


@register(
    "logit_adjusted",
    kind="loss",
    year=2021,
    arxiv="2007.07314",
    neutral={"tau": 0.0},
    space={"tau": {"values": (0.5, 1.0, 1.5), "low": 0.0}},
    examples=({}, {"tau": 0.0}, {"tau": 3.0}),
)
class LogitAdjustedLoss(FusedLoss):
    r"""Cross-entropy after each logit was raised by its class's log-prior, so that the bare logits are balanced.

    .. math:: \ell(z, y) = -\log \frac{\pi_y^\tau e^{z_y}}{\sum_k \pi_k^\tau e^{z_k}}, \qquad \pi_k = n_k / \sum_j n_j

    Predictions are made from the bare logits. With tau = 1 this is the balanced softmax.

    Args:
        class_counts: training images of each class (C,). A class with 0 has prior 0: it is left out of the sum, so
            other samples do not move its logit; a sample labelled with it has an infinite loss (unless tau is 0).
        tau: how much of the prior is taken out; 0 gives cross-entropy. 1 is the paper's, consistent for the
            balanced error.

    Differs from the paper: nothing known. The released code adds 1e-12 to the prior, which matters for classes
    without images only.

    Example:
        >>> LogitAdjustedLoss([90, 10], tau=0.5)(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(1.3863)

    Reference: Menon, Jayasumana, Rawat, Jain, Veit, Kumar. Long-Tail Learning via Logit Adjustment. ICLR 2021.
    """

    class_counts: Tensor

    def __init__(self, class_counts: checks.Counts, tau: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction, class_counts)
        self.tau = checks.at_least("tau", tau, 0)

    def derived(self, counts: Tensor) -> Tensor:
        # counts do for the prior, since dividing by their sum moves all logits alike
        return self.tau * counts.log() if self.tau else torch.zeros_like(counts)  # an empty class's logarithm is -inf

    def reduced(self, logits: Tensor, target: Tensor, reduction: str) -> Tensor:
        return logit_adjusted_loss(logits, target, tau_log_prior=self.of_classes(logits), reduction=reduction)
