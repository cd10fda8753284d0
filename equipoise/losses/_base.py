"""What all losses share: one value for each sample first, the reduction last."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .. import checks
from ..core import signature_repr

REDUCTIONS = ("mean", "sum", "none")


class Loss(nn.Module):
    """A loss on hard labels. A subclass writes `per_sample`; it never weighs classes.

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

    def reduced(self, logits: Tensor, target: Tensor, reduction: str) -> Tensor:
        """`per_sample`, or its mean or sum over the batch."""
        values = self.per_sample(logits, target)
        if reduction == "none":
            return values
        return values.mean() if reduction == "mean" else values.sum()

    def link(self, logits: Tensor) -> Tensor:
        """Logits whose softmax is the probability this loss trains: what predictions are made from."""
        return logits

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        num_classes = None if self.class_counts is None else len(self.class_counts)
        checks.logits_and_target(type(self).__name__, logits, target, num_classes)
        return self.reduced(logits, target, self.reduction)

    def extra_repr(self) -> str:
        return signature_repr(self)


class FusedLoss(Loss):
    """A loss whose kernel reduces by itself, which spares it a pass each way. A subclass writes `reduced`."""

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        return self.reduced(logits, target, "none")

    def reduced(self, logits: Tensor, target: Tensor, reduction: str) -> Tensor:
        raise NotImplementedError


def with_slope(x: Tensor, values: Tensor, slope: Tensor) -> Tensor:
    """`values` (N,) as a function of `x` (N, …) whose derivative is `slope`, a tensor like `x`.

    For losses whose value and derivative share their costly parts: autograd would make two to four times as many
    passes. A second derivative raises an error.
    """
    return _WithSlope.apply(x, values, slope)


class _WithSlope(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, values: Tensor, slope: Tensor) -> Tensor:
        ctx.save_for_backward(slope)
        return values

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        # `once_differentiable` would let this pass wherever `grad` is a constant, and the result be wrong
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            raise RuntimeError("this loss has no second derivative: it cannot be used with create_graph=True")
        (slope,) = ctx.saved_tensors
        return (grad[:, None] if slope.dim() == 2 else grad) * slope, None, None
