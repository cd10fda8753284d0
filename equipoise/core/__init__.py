"""The words every part shares: `Batch`, `Output`, the registry of methods, and `Spec`."""

from .registry import (
    FACTS,
    KINDS,
    METHOD_KINDS,
    Batch,
    Card,
    EquipoiseError,
    Output,
    Spec,
    UnlikeClasses,
    card,
    cards,
    did_you_mean,
    full_precision,
    known,
    register,
    signature_repr,
)

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
