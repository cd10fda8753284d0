"""The words every part shares: `Batch`, `Output`, the registry of methods, and `Spec`."""

from .batch import Batch, Output, full_precision
from .choices import did_you_mean, known
from .errors import EquipoiseError, UnlikeClasses
from .registry import FACTS, KINDS, METHOD_KINDS, Card, card, cards, register, signature_repr
from .spec import Spec

__all__ = [
    "FACTS",
    "KINDS",
    "METHOD_KINDS",
    "Batch",
    "Card",
    "EquipoiseError",
    "Output",
    "Spec",
    "UnlikeClasses",
    "card",
    "cards",
    "did_you_mean",
    "full_precision",
    "known",
    "register",
    "signature_repr",
]
