"""Mixing samples of a batch, at the input or inside the network."""

from ._base import Mix, Mixed, MixPlan
from .cmo import ContextRichOversampling
from .cutmix import CutMix
from .manifold_mixup import ManifoldMixup
from .mfw import MajorFeatureWeakening, mfw_weights
from .mixup import Mixup
from .remix import Remix

__all__ = [
    "ContextRichOversampling",
    "CutMix",
    "MajorFeatureWeakening",
    "ManifoldMixup",
    "Mix",
    "MixPlan",
    "Mixed",
    "Mixup",
    "Remix",
    "mfw_weights",
]
