"""Methods with a step of their own."""

from ._base import Deferred, Procedure
from .bbn import BilateralBranch, branch_share, reversed_shares
from .domain_adaptation import DomainAdaptation, weight_corrections
from .m2m import MajorToMinor, seed_probability
from .meta_weight_net import MetaWeightNet, meta_weights
from .mutual import MutualLearning, divergence
from .oltr import OpenLongTail, centroid_loss

__all__ = [
    "BilateralBranch",
    "Deferred",
    "DomainAdaptation",
    "MajorToMinor",
    "MetaWeightNet",
    "MutualLearning",
    "OpenLongTail",
    "Procedure",
    "branch_share",
    "centroid_loss",
    "divergence",
    "meta_weights",
    "reversed_shares",
    "seed_probability",
    "weight_corrections",
]
