"""Weightings, samplers and corrections after training."""

from ._base import Posthoc, Sampler, Weighting
from .posthoc.logit_adjust import LogitAdjust, logit_adjustment
from .posthoc.prior_shift import estimate_prior, fit_bias_corrected
from .posthoc.tau_norm import TauNorm, tau_normalize
from .posthoc.temperature import Temperature, fit_temperature
from .samplers.class_balanced import ClassBalancedSampler
from .samplers.distributed import DistributedWeightedSampler
from .samplers.non_iid import NonIIDSampler
from .samplers.progressive import ProgressiveSampler
from .samplers.shard_by_shard import ShardSampler, shard_by_shard
from .samplers.square_root import SquareRootSampler
from .samplers.target_ratio import TargetRatioSampler
from .samplers.uniform import UniformSampler
from .weightings.bias import BiasWeighting, bias_weights
from .weightings.effective_number import EffectiveNumber, effective_number_weights
from .weightings.inverse_frequency import InverseFrequency, inverse_frequency_weights

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
    "ShardSampler",
    "SquareRootSampler",
    "TargetRatioSampler",
    "TauNorm",
    "Temperature",
    "UniformSampler",
    "Weighting",
    "bias_weights",
    "effective_number_weights",
    "estimate_prior",
    "fit_bias_corrected",
    "fit_temperature",
    "inverse_frequency_weights",
    "logit_adjustment",
    "shard_by_shard",
    "tau_normalize",
]
