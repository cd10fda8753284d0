"""Second stages: what continues from a trained network."""

from ._base import Stage
from .crt import ClassifierRetraining
from .lws import LearnableWeightScaling

__all__ = ["ClassifierRetraining", "LearnableWeightScaling", "Stage"]
