"""The objective: loss × weighting + penalty, on hard labels, mixed or not."""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

from torch import Tensor, nn

from ..core import Batch, Output
from ..imbalance import Weighting
from ..losses import Loss


class Terms(NamedTuple):
    """`total` is what is minimised; `per_sample` (N,) is the weighed loss before the batch is normalised.

    `weight` is what it counts beside other parts of a larger batch: the sum of its weights where that divides, or 1.
    """

    total: Tensor
    per_sample: Tensor
    weight: Tensor | float = 1.0


class Objective(nn.Module):
    """The sum over the batch of λ·w(y)·ℓ(z, y) + (1−λ)·w(y′)·ℓ(z, y′), divided by N, plus the penalty.

    A weighting may ask to divide by the sum of λ·w(y) + (1−λ)·w(y′) instead (`Weighting.normalize`). A loss never sees
    soft labels, never weighs and never reduces, so any loss goes with any weighting and any mixing.
    """

    def __init__(self, loss: Loss, weighting: Weighting | None = None, penalty: nn.Module | None = None) -> None:
        super().__init__()
        self.loss, self.weighting, self.penalty = loss, weighting, penalty

    def forward(self, out: Output, batch: Batch, progress: Tensor | float = 1.0) -> Terms:
        values, weights = self._weighed(out, batch.target, progress)
        if batch.other is not None and batch.lam is not None:
            other_values, other_weights = self._weighed(out, batch.other, progress)
            values = batch.lam * values + (1 - batch.lam) * other_values
            weights = batch.lam * weights + (1 - batch.lam) * other_weights
        total = self.normalized(values, weights)
        weight = weights.detach().sum() if self._divides_by(weights) else 1.0
        if self.penalty is not None:
            total = total + self.penalty(out, batch)
        return Terms(total, values, weight)

    def weights(self, out: Output, target: Tensor, progress: Tensor | float) -> Tensor | float:
        """How much each sample counts, (N,), or 1 for all."""
        return 1.0 if self.weighting is None else self.weighting(target, out, progress)

    def normalized(self, values: Tensor, weights: Tensor | float) -> Tensor:
        """The loss of the batch from the weighed losses (N,) of its samples and what they were weighed by."""
        return values.sum() / weights.sum() if self._divides_by(weights) else values.mean()

    def _divides_by(self, weights: Tensor | float) -> TypeGuard[Tensor]:
        """Whether the batch's loss is divided by the sum of its weights; by the number of samples otherwise."""
        return isinstance(weights, Tensor) and self.weighting is not None and self.weighting.normalize == "batch"

    def _weighed(self, out: Output, target: Tensor, progress: Tensor | float) -> tuple[Tensor, Tensor | float]:
        values = self.loss.per_sample(out.logits, target)
        if self.weighting is None:
            return values, 1.0
        weights = self.weights(out, target, progress)
        return weights * values, weights
