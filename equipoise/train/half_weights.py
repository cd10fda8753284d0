"""The weights of a network's convolutions in bf16, for a step on a GPU: all by one launch, and their gradients too.

PyTorch's autocast makes a copy of each by a launch of its own, forward and backward, with the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


class HalfWeights:
    """Those of plain convolutions; what else a network has, autocast casts where it must."""

    def __init__(self, network: nn.Module) -> None:
        found = (module for module in network.modules() if type(module) is nn.Conv2d)
        self.convolutions = [module for module in found if module.weight.dtype == torch.float32]

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Within, the convolutions have them in place of their weights, to which gradients flow."""
        weights = [module.weight for module in self.convolutions]
        for module, half in zip(self.convolutions, Halved.apply(*weights), strict=True):
            module._parameters["weight"] = half  # as an attribute it would have to be a parameter
        try:
            yield
        finally:
            for module, weight in zip(self.convolutions, weights, strict=True):
                module._parameters["weight"] = weight  # type: ignore[assignment]


class Halved(torch.autograd.Function):
    """Tensors in bf16."""

    @staticmethod
    def forward(ctx: Any, *values: Tensor) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        return _cast(values, torch.bfloat16)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        whole = iter(_cast([gradient for gradient in gradients if gradient is not None], torch.float32))
        return tuple(None if gradient is None else next(whole) for gradient in gradients)


def _cast(values: Any, dtype: torch.dtype) -> tuple[Tensor, ...]:
    cast = [torch.empty_like(value, dtype=dtype) for value in values]
    if cast:
        torch._foreach_copy_(cast, list(values))
    return tuple(cast)
