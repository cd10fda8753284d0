"""Sections from analysis.json, which `equipoise analyze` writes."""

from ._reading import section_of
from .beyond import further, robustness, transfer
from .representations import representations
from .similarity import similarity
from .weights import alpha, weights

ANALYZED = (
    section_of("predictions", similarity),
    section_of("representations", representations),
    section_of("transfer", transfer),
    section_of("further", further),
    section_of("corruptions", robustness),
    section_of("weights", weights),
    section_of("alpha", alpha),
)

__all__ = ["ANALYZED"]
