"""What weightings by class share: one weight for each class, normalised once, looked up by label."""

from __future__ import annotations

import torch
from torch import Tensor

from ...core import Output, checks
from .._base import Weighting

NORMALIZATIONS = ("classes", "batch")


def sum_to_num_classes(weights: Tensor, class_counts: Tensor) -> Tensor:
    """Scale `weights` (C,) to sum to C; a class without images gets 0 and the others share the whole sum."""
    weights = weights.where(class_counts > 0, 0.0)
    return weights * (len(weights) / weights.sum())


def weight_type() -> torch.dtype:
    """float32, or float64 where that is PyTorch's default; a default of half precision would round weights by 0.4 %."""
    return torch.promote_types(torch.get_default_dtype(), torch.float32)


class ClassWeighting(Weighting):
    """A sample counts what its class counts. A subclass writes `derived`: the class weights (C,) of counts (C,)."""

    class_counts: Tensor

    def __init__(self, class_counts: checks.Counts, start: float, normalize: str) -> None:
        super().__init__(start, class_counts)
        self.normalize = checks.one_of("normalize", normalize, NORMALIZATIONS)

    @property
    def class_weights(self) -> Tensor:
        """Of each class (C,), on the device of the counts."""
        return self.ready(weight_type(), self.class_counts.device)

    def weights(self, target: Tensor, out: Output | None) -> Tensor:
        return self.ready(weight_type(), target.device).index_select(0, target.long())
