"""Normalization: layers, one a file; example weighing and surgery on any network; what decays, and what it reaches."""

from .batch import BatchNorm2d
from .batch_group import BatchGroupNorm2d
from .batch_renorm import BatchRenorm2d
from .decay import decay_groups, is_norm
from .example_weight import example_weight, set_example_weight
from .ghost import GhostBatchNorm2d
from .group import GroupNorm2d
from .surgery import replace_norm
from .weighing import example_weighted_norm

__all__ = [
    "BatchGroupNorm2d",
    "BatchNorm2d",
    "BatchRenorm2d",
    "GhostBatchNorm2d",
    "GroupNorm2d",
    "decay_groups",
    "example_weight",
    "example_weighted_norm",
    "is_norm",
    "replace_norm",
    "set_example_weight",
]
