"""What all losses share: one value for each sample first, the reduction last."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.fx import Proxy

from ..core import checks, signature_repr
from ..core.class_counts import KnowsCounts
from ..core.tracing import is_watched

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

    def of_classes(self, logits: Tensor) -> Tensor:
        """What is `derived` from the counts, in the type and on the device in which these logits are computed with."""
        return self.ready(torch.float32 if logits.element_size() < 4 else logits.dtype, logits.device)

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
