"""The objective: loss × weighting + penalty, on hard labels, mixed or not."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

from ..core import Batch, Output
from ..imbalance import Weighting
from ..losses import Loss


class Terms(NamedTuple):
    """`total` is what is minimised; `per_sample` (N,) is the weighed loss before its mean."""

    total: Tensor
    per_sample: Tensor


class Objective(nn.Module):
    r"""mean over n of  λ·w(y)·ℓ(z, y) + (1−λ)·w(y′)·ℓ(z, y′), plus the penalty.

    A loss never sees soft labels, never weighs and never reduces, so any loss goes with any weighting and any mixing.
    """

    def __init__(self, loss: Loss, weighting: Weighting | None = None, penalty: nn.Module | None = None) -> None:
        super().__init__()
        self.loss, self.weighting, self.penalty = loss, weighting, penalty

    def forward(self, out: Output, batch: Batch, progress: Tensor | float = 1.0) -> Terms:
        values = self._weighed(out, batch.target, progress)
        if batch.other is not None and batch.lam is not None:
            values = batch.lam * values + (1 - batch.lam) * self._weighed(out, batch.other, progress)
        total = values.mean()
        if self.penalty is not None:
            total = total + self.penalty(out, batch)
        return Terms(total, values)

    def _weighed(self, out: Output, target: Tensor, progress: Tensor | float) -> Tensor:
        values = self.loss.per_sample(out.logits, target)
        return values if self.weighting is None else self.weighting(target, out, progress) * values
