"""The constructor that our networks share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from torch import nn

from .._base import HeadFactory, Network, NormFactory, kaiming_
from ..heads.linear import LinearHead


def head_last(build: Callable[..., None]) -> Callable[..., None]:
    """Decorates `__init__(self, in_channels, make_norm, …)`, which makes all but the head and sets `feature_dim`.

    The constructor it becomes takes `num_classes`, `in_channels`, `make_norm`, `make_head` and then the parameters of
    the network itself. Weights are drawn from He's distribution before the head is made, so that networks that differ
    in the head alone start alike.
    """

    def __init__(
        self: Network,
        num_classes: int,
        in_channels: int = 3,
        make_norm: NormFactory = nn.BatchNorm2d,
        make_head: HeadFactory = LinearHead,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        build(self, in_channels, make_norm, *args, **kwargs)
        kaiming_(self)
        self.head = make_head(self.feature_dim, num_classes)
        if self.draws_head:
            kaiming_(self.head)

    shared = list(inspect.signature(__init__, eval_str=True).parameters.values())[:5]
    own = list(inspect.signature(build, eval_str=True).parameters.values())[3:]
    constructor: Any = wraps(build)(__init__)
    constructor.__signature__ = inspect.Signature([*shared, *own], return_annotation=None)
    return constructor
