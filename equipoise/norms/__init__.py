"""Normalization: layers, one a file; example weighing and surgery on any network; what decays, and what it reaches."""

from .advice import FourThings, NormAdvice, advise_norm, four_things
from .batch import BatchNorm2d
from .batch_group import BatchGroupNorm2d
from .batch_renorm import BatchRenorm2d
from .decay import decay_groups, is_norm, pull_towards_one
from .example_weighing.example_weight import example_weight, set_example_weight
from .example_weighing.posthoc import ExampleWeighing
from .example_weighing.tune import TunedWeight, tune_example_weight
from .example_weighing.weighing import example_weighted_norm
from .ghost import GhostBatchNorm2d
from .group import GroupNorm2d
from .output_range import NormRange, output_range
from .paths import unshielded_affine
from .surgery import replace_norm

__all__ = [
    "BatchGroupNorm2d",
    "BatchNorm2d",
    "BatchRenorm2d",
    "ExampleWeighing",
    "FourThings",
    "GhostBatchNorm2d",
    "GroupNorm2d",
    "NormAdvice",
    "NormRange",
    "TunedWeight",
    "advise_norm",
    "decay_groups",
    "example_weight",
    "example_weighted_norm",
    "four_things",
    "is_norm",
    "output_range",
    "pull_towards_one",
    "replace_norm",
    "set_example_weight",
    "tune_example_weight",
    "unshielded_affine",
]
