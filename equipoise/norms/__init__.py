"""Normalization layers, one a file."""

from .batch import batch
from .decay import decay_groups, is_norm

__all__ = ["batch", "decay_groups", "is_norm"]
