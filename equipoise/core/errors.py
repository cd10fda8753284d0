"""Mistakes of a user, told in words."""

from __future__ import annotations


class EquipoiseError(ValueError):
    """A mistake in what the user asked for; the command line shows its text without a traceback."""


class UnlikeClasses(EquipoiseError):
    """A parameter with a value for each class has another number of them; only the data can tell."""
