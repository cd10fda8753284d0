"""What weightings by class share: one weight for each class, normalised once, looked up by label."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import checks
from ..core import Output
from ._base import Weighting


def sum_to_num_classes(weights: Tensor, class_counts: Tensor) -> Tensor:
    """Scale `weights` (C,) to sum to C; a class without images gets 0 and the others share the whole sum."""
    weights = weights.where(class_counts > 0, 0.0)
    return (weights * (len(weights) / weights.sum())).to(torch.get_default_dtype())


class ClassWeighting(Weighting):
    """A sample counts what its class counts. A subclass gives the class weights (C,) to the constructor."""

    class_counts: Tensor
    class_weights: Tensor

    def __init__(self, class_counts: checks.Counts, class_weights: Tensor, start: float) -> None:
        super().__init__(start)
        # made from the constructor's arguments, so no part of a checkpoint
        self.register_buffer("class_counts", checks.counts(class_counts).long(), persistent=False)
        self.register_buffer("class_weights", class_weights, persistent=False)

    def weights(self, target: Tensor, out: Output | None) -> Tensor:
        return self.class_weights[target]
