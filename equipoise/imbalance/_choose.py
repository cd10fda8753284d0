"""How post-hoc corrections choose their strength on held-out outputs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

TAUS = tuple(i / 10 for i in range(21))


def best_tau(logits_at: Callable[[float], Tensor], target: Tensor, share: Tensor | None = None) -> float:
    """The tau of 0, 0.1, …, 2 whose logits (N, C) have the best balanced accuracy; of equals the nearest to 1.

    `share` (C,) weighs the classes' accuracies instead of a plain mean. Classes absent from `target` are left out.
    One tau at a time: all at once would need 21 copies of the outputs.
    """
    if not len(target):
        raise ValueError("tau is chosen on held-out outputs, and there are none; give tau a number")

    def score(tau: float) -> float:
        logits = logits_at(tau)
        return round(_accuracy(logits.argmax(1), target, logits.shape[1], share), 12)

    return min(TAUS, key=lambda tau: (-score(tau), abs(tau - 1)))


def _accuracy(predicted: Tensor, target: Tensor, num_classes: int, share: Tensor | None) -> float:
    total = torch.bincount(target, minlength=num_classes).cpu().double()
    right = torch.bincount(target[predicted == target], minlength=num_classes).cpu().double()
    weight = (torch.ones_like(total) if share is None else share).where(total > 0, 0.0)
    return float((weight * right / total.clamp_min(1)).sum() / weight.sum())
