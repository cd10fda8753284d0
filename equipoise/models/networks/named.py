"""Names for the members of a family that the papers use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from torch import nn

from ...core import register
from .._base import HeadFactory, Network, NormFactory
from ..heads.linear import LinearHead

Family = TypeVar("Family", bound=Network)


def named(
    name: str, family: type[Family], what: str, year: int, arxiv: str, **parameters: Any
) -> Callable[..., Family]:
    """Register `family` at these parameters as the model `name`, described by `what`; gives its factory."""

    def make(
        num_classes: int,
        in_channels: int = 3,
        make_norm: NormFactory = nn.BatchNorm2d,
        make_head: HeadFactory = LinearHead,
    ) -> Family:
        return family(num_classes, in_channels, make_norm, make_head, **parameters)

    make.__name__ = make.__qualname__ = name
    make.__module__ = family.__module__
    make.__doc__ = f"{what} See `{family.__name__}`."
    return register(name, kind="model", year=year, arxiv=arxiv)(make)
