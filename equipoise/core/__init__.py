"""The words every part shares: `Batch`, `Output`, the registry of methods, and `Spec`."""

from typing import TYPE_CHECKING, Any

from .choices import did_you_mean, known
from .errors import EquipoiseError, UnlikeClasses
from .registry import FACTS, KINDS, METHOD_KINDS, Card, card, cards, register, signature_repr
from .spec import Spec

if TYPE_CHECKING:
    from .batch import Batch, Output, full_precision

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


def __getattr__(name: str) -> Any:
    """What needs PyTorch, which takes a second to import: `equipoise --help` does without it."""
    if name in ("Batch", "Output", "full_precision"):
        from . import batch

        return getattr(batch, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
