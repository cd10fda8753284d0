"""Methods with a step of their own."""

from ._base import Procedure

__all__ = ["Procedure"]
