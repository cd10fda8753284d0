"""What all losses share: one value for each sample first, the reduction last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx import Proxy

from .. import native
from ..core import checks, full_precision, signature_repr
from ..core.class_counts import KnowsCounts
from ..core.tracing import is_watched
from ..native.losses import Kernel

REDUCTIONS = ("mean", "sum", "none")


def reduce(values: Tensor, reduction: str) -> Tensor:
    """`values` (N,) or (N, 1) as (N,), or their mean or sum."""
    if reduction == "none":
        return values.flatten()
    return values.mean() if reduction == "mean" else values.sum()


def label_rows(like: Tensor, target: Tensor, label: float, others: float) -> Tensor:
    """A tensor like `like` (N, C) with the number `label` at each row's label and `others` elsewhere."""
    if is_watched():  # a comparison becomes part of what follows, and writes into nothing
        at_label = target[:, None] == torch.arange(like.shape[1], device=like.device)
        # as tensors: of bare numbers the result would have the default type
        there, elsewhere = (torch.full((), x, dtype=like.dtype, device=like.device) for x in (label, others))
        return torch.where(at_label, there, elsewhere)
    return torch.full_like(like, others).scatter_(1, target[:, None], label)


class Loss(KnowsCounts):
    """A loss on hard labels. A subclass writes `per_sample`; it never weighs classes.

    Weights multiply `per_sample` from outside (`equipoise.imbalance`), so that they combine with every loss.
    A subclass that knows the number of classes hands over its counts, kept in the buffer `class_counts`.
    """

    def __init__(self, reduction: str = "mean", class_counts: checks.Counts | None = None) -> None:
        super().__init__(class_counts)
        self.reduction = checks.one_of("reduction", reduction, REDUCTIONS)
        self._num_classes = None if self.class_counts is None else len(self.class_counts)

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        """logits (N, C), target (N,) -> (N,)."""
        raise NotImplementedError

    def reduced(self, logits: Tensor, target: Tensor, reduction: str) -> Tensor:
        """`per_sample`, or its mean or sum over the batch."""
        return reduce(self.per_sample(logits, target), reduction)

    def link(self, logits: Tensor) -> Tensor:
        """Logits whose softmax is the probability this loss trains: what predictions are made from."""
        return logits

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        if isinstance(logits, Proxy):  # a step of `torch.fx.symbolic_trace`, which takes modules of PyTorch as they are
            path = logits.tracer.path_of_module(self)
            return logits.tracer.create_proxy("call_module", path, (logits, target), {})
        checks.batch_shapes(type(self).__name__, logits, target, self._num_classes)
        try:
            return self.reduced(logits, target, self.reduction)
        except (IndexError, RuntimeError):  # on a CPU a label out of range ends here: looked for only then, it is free
            if not is_watched():
                checks.labels(type(self).__name__, logits, target)
            raise

    def extra_repr(self) -> str:
        return signature_repr(self)


class FusedLoss(Loss):
    """A loss whose kernel reduces by itself, which spares it a pass each way. A subclass writes `reduced`."""

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        return self.reduced(logits, target, "none")

    def reduced(self, logits: Tensor, target: Tensor, reduction: str) -> Tensor:
        raise NotImplementedError


Formula = Callable[[Tensor, Tensor, str], Tensor]  # logits (N, C), target (N,), the reduction -> (N,) or a number


def in_one_call(
    logits: Tensor, target: Tensor, reduction: str, formula: Formula, kernel: Kernel, **options: Any
) -> Tensor:
    """The loss `formula` at full-precision logits, where possible by a `kernel` that finds value and slope at once.

    The kernels (`equipoise.native`) are for training on a CPU; `options` are theirs. Autograd makes more passes over
    the logits, and for few of them takes the time of a dozen operations instead of one.
    """
    logits, target = full_precision(logits), whole_labels(target)
    if logits.requires_grad and torch.is_grad_enabled():
        of_classes = [t for t in options.values() if isinstance(t, Tensor)]
        if (
            native.suits(logits, *of_classes, labels=target)
            and target.shape[0]
            and not any(t.requires_grad for t in of_classes)  # the kernels know the slope of the logits alone
        ):
            return _InOneCall.apply(logits, target, reduction, formula, kernel, options)
    return formula(logits, target, reduction)


def whole_labels(target: Tensor) -> Tensor:
    """`target` as int64, which all kernels take, PyTorch's and ours."""
    return target if target.dtype is torch.int64 else target.long()


class _InOneCall(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, target: Tensor, reduction: str, formula: Formula, kernel: Kernel, options: Any
    ) -> Tensor:
        value, slope = kernel(logits, target, reduction, **options)
        ctx.save_for_backward(logits, target, slope)
        ctx.reduction, ctx.formula = reduction, formula
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logits, target, slope = ctx.saved_tensors
        none = (None,) * 5
        if torch.is_grad_enabled():  # create_graph=True
            value = ctx.formula(logits, target, ctx.reduction)
            return torch.autograd.grad(value, logits, grad, create_graph=True)[0], *none
        if ctx.reduction == "none":
            return slope * grad[:, None], *none
        if not native.suits(grad):  # several gradients at once, or somebody is watching
            return slope * grad, *none
        factor = float(grad)  # on the CPU, where nothing waits for it
        return slope if factor == 1 else slope * factor, *none
