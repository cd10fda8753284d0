"""How post-hoc corrections choose their strength on held-out outputs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

TAUS = tuple(i / 10 for i in range(21))


def best_tau(logits_at: Callable[[float], Tensor], target: Tensor, share: Tensor | None = None) -> float:
    """The tau of 0, 0.1, …, 2 whose logits (N, C) have the best balanced accuracy; of equals the nearest to 1.

    `share` (C,) weighs the classes' accuracies instead of a plain mean. Classes absent from `target` do not matter.
    One tau at a time: all at once would need 21 copies of the outputs.
    """
    if not len(target):
        raise ValueError("tau is chosen on held-out outputs, and there are none; give tau a number")

    total = torch.bincount(target).cpu()

    def score(tau: float) -> float:
        right = torch.bincount(target[logits_at(tau).argmax(1) == target], minlength=len(total)).cpu()
        recall = right.double() / total.clamp_min(1)
        return round(float(recall.sum() if share is None else (share[: len(total)] * recall).sum()), 12)

    return min(TAUS, key=lambda tau: (-score(tau), abs(tau - 1)))
