"""What all losses share: one value for each sample first, the reduction last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .. import checks, native
from ..core import signature_repr
from ..native.losses import Kernel

REDUCTIONS = ("mean", "sum", "none")


def reduce(values: Tensor, reduction: str) -> Tensor:
    """`values` (N,) or (N, 1) as (N,), or their mean or sum."""
    if reduction == "none":
        return values.flatten()
    return values.mean() if reduction == "mean" else values.sum()


def label_rows(like: Tensor, target: Tensor, label: float, others: float) -> Tensor:
    """A tensor like `like` (N, C) with the number `label` at each row's label and `others` elsewhere."""
    if torch.compiler.is_compiling():  # a comparison becomes part of what follows
        at_label = target[:, None] == torch.arange(like.shape[1], device=like.device)
        return torch.where(at_label, label, others).to(like.dtype)
    return torch.full_like(like, others).scatter_(1, target[:, None], label)


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
        self._num_classes = None if counts is None else len(counts)
        self._ready: tuple[Tensor, int, Tensor] | None = None

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
        checks.batch_shapes(type(self).__name__, logits, target, self._num_classes)
        try:
            return self.reduced(logits, target, self.reduction)
        except (IndexError, RuntimeError):  # on a CPU a label out of range ends here: looked for only then, it is free
            checks.labels(type(self).__name__, logits, target)
            raise

    def derived(self) -> Tensor:
        """What a subclass derives from its counts, in float64; `ready` asks for it once."""
        raise NotImplementedError

    def ready(self, logits: Tensor) -> Tensor:
        """`derived` in the type and on the device of `logits`, computed anew only when the counts have changed."""
        if torch.compiler.is_compiling():
            return self.derived().to(logits)
        counts = self._buffers["class_counts"]
        assert counts is not None
        version = -1 if counts.is_inference() else counts._version  # counts the changes in place
        if self._ready is not None and self._ready[0] is counts and self._ready[1] == version:
            kept = self._ready[2]
            if kept.dtype == logits.dtype and kept.device == logits.device:
                return kept
        fresh = self.derived().to(logits)
        if not (fresh.is_cuda and torch.cuda.is_current_stream_capturing()):  # else it has no numbers yet
            self._ready = counts, version, fresh
        return fresh

    def extra_repr(self) -> str:
        return signature_repr(self)


class FusedLoss(Loss):
    """A loss whose kernel reduces by itself, which spares it a pass each way. A subclass writes `reduced`."""

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        return self.reduced(logits, target, "none")

    def reduced(self, logits: Tensor, target: Tensor, reduction: str) -> Tensor:
        raise NotImplementedError


Formula = Callable[[Tensor, str], Tensor]  # logits (N, C) and the reduction -> (N,) or a number


def in_one_call(
    logits: Tensor, target: Tensor, reduction: str, formula: Formula, kernel: Kernel, **options: Any
) -> Tensor:
    """The loss `formula` at full-precision logits, where possible by a `kernel` that finds value and slope at once.

    The kernels (`equipoise.native`) are for training on a CPU; `options` are theirs. Autograd makes more passes over
    the logits, and for few of them takes the time of a dozen operations instead of one.
    """
    wanted = logits.requires_grad and torch.is_grad_enabled()
    if wanted and len(target) and target.dtype is torch.int64 and native.suits(logits):
        return _InOneCall.apply(logits, target, reduction, formula, kernel, options)
    return formula(logits, reduction)


class _InOneCall(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, target: Tensor, reduction: str, formula: Formula, kernel: Kernel, options: Any
    ) -> Tensor:
        value, slope = kernel(logits, target, reduction, **options)
        ctx.save_for_backward(logits, slope)
        ctx.reduction, ctx.formula = reduction, formula
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logits, slope = ctx.saved_tensors
        none = (None,) * 5
        if torch.is_grad_enabled():  # create_graph=True
            value = ctx.formula(logits, ctx.reduction)
            return torch.autograd.grad(value, logits, grad, create_graph=True)[0], *none
        if ctx.reduction == "none":
            return slope * grad[:, None], *none
        factor = float(grad)  # on the CPU, where nothing waits for it
        return slope if factor == 1 else slope * factor, *none
