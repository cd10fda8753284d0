"""Inference that counts the example itself in the moving averages."""

from .example_weight import example_weight, set_example_weight
from .posthoc import ExampleWeighing
from .tune import TunedWeight, tune_example_weight
from .weighing import example_weighted_norm

__all__ = [
    "ExampleWeighing",
    "TunedWeight",
    "example_weight",
    "example_weighted_norm",
    "set_example_weight",
    "tune_example_weight",
]
