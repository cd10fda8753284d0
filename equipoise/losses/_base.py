"""What all losses share: one value for each sample first, the reduction last."""

from __future__ import annotations

from torch import Tensor, nn

from .. import checks
from ..core import signature_repr

REDUCTIONS = ("mean", "sum", "none")


class Loss(nn.Module):
    """A loss on hard labels. A subclass writes `per_sample`; it never weighs classes and never reduces.

    Weights multiply `per_sample` from outside (`equipoise.imbalance`), so that they combine with every loss.
    A subclass that knows the number of classes hands over its counts, kept in the buffer `class_counts`.
    """

    class_counts: Tensor | None

    def __init__(self, reduction: str = "mean", class_counts: checks.Counts | None = None) -> None:
        super().__init__()
        self.reduction = checks.one_of("reduction", reduction, REDUCTIONS)
        # whole numbers: a cast of the module to half precision leaves them alone
        counts = None if class_counts is None else checks.counts(class_counts).long()
        self.register_buffer("class_counts", counts)

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        """logits (N, C), target (N,) -> (N,)."""
        raise NotImplementedError

    def link(self, logits: Tensor) -> Tensor:
        """Logits whose softmax is the probability this loss trains: what predictions are made from."""
        return logits

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        num_classes = None if self.class_counts is None else len(self.class_counts)
        checks.logits_and_target(type(self).__name__, logits, target, num_classes)
        values = self.per_sample(logits, target)
        if self.reduction == "none":
            return values
        return values.mean() if self.reduction == "mean" else values.sum()

    def extra_repr(self) -> str:
        return signature_repr(self)
