"""Running a network in another mode and leaving it as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def in_mode(network: nn.Module, training: bool) -> Iterator[None]:
    """`network` in training or inference mode for the length of a block; each module then gets its own mode back."""
    before = [(module, module.training) for module in network.modules()]
    network.train(training)
    try:
        yield
    finally:
        for module, mode in before:
            module.training = mode
