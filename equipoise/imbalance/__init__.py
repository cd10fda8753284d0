"""Weightings, samplers and corrections after training."""

from ._base import Posthoc, Sampler, Weighting
from .bias import BiasWeighting, bias_weights
from .class_balanced import ClassBalancedSampler
from .distributed import DistributedWeightedSampler
from .effective_number import EffectiveNumber, effective_number_weights
from .inverse_frequency import InverseFrequency, inverse_frequency_weights
from .logit_adjust import LogitAdjust, logit_adjustment
from .non_iid import NonIIDSampler
from .progressive import ProgressiveSampler
from .square_root import SquareRootSampler
from .tau_norm import TauNorm, tau_normalize
from .temperature import Temperature, fit_temperature
from .uniform import UniformSampler

__all__ = [
    "BiasWeighting",
    "ClassBalancedSampler",
    "DistributedWeightedSampler",
    "EffectiveNumber",
    "InverseFrequency",
    "LogitAdjust",
    "NonIIDSampler",
    "Posthoc",
    "ProgressiveSampler",
    "Sampler",
    "SquareRootSampler",
    "TauNorm",
    "Temperature",
    "UniformSampler",
    "Weighting",
    "bias_weights",
    "effective_number_weights",
    "fit_temperature",
    "inverse_frequency_weights",
    "logit_adjustment",
    "tau_normalize",
]
