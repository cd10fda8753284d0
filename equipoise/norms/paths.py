"""Which γ and β reach the output of a network without being undone by another norm on the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from .kernels.modes import in_mode

__all__ = ["unshielded_affine"]


def unshielded_affine(network: nn.Module, example_input: Tensor | tuple[Any, ...]) -> list[str]:
    """The norms from which a path leads to the output that crosses no other norm, by name.

    A norm undoes the scale and shift of what comes in, so decay of γ and β acts on the function that a network
    computes only along such paths: many in residual networks, one or a few in plain ones, where it is best left off.

    It follows the graph that autograd makes of one pass, in inference mode, back from the output; any code that builds
    the network will do.

    Args:
        network: any module.
        example_input: what to call it with; a tuple is taken apart.

    >>> network = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.ReLU(), nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2))
    >>> unshielded_affine(network, torch.randn(1, 1, 4, 4))
    ['4']

    Reference: Summers, Dinneen. Four Things Everyone Should Know to Improve Batch Normalization. ICLR 2020.
    """
    anchor = torch.ones((), requires_grad=True)  # frozen networks get a graph too
    hooks = [
        module.register_forward_hook(lambda _m, _i, out, name=name: _Mark.apply(out, anchor, name))
        for name, module in network.named_modules()
        if _normalizes(module)
    ]
    if not hooks:
        raise ValueError(f"{type(network).__name__} has no norms")
    try:
        with in_mode(network, training=False), torch.enable_grad():
            output = network(*example_input) if isinstance(example_input, tuple) else network(example_input)
    finally:
        for hook in hooks:
            hook.remove()
    reached = _first_marks([t.grad_fn for t in _tensors(output) if t.grad_fn is not None])
    return [name for name, module in network.named_modules() if name in reached and _has_affine(module)]


class _Mark(torch.autograd.Function):
    """The identity, under a name that the graph remembers."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, anchor: Tensor, name: str) -> Tensor:
        ctx.norm_name = name
        return x.clone()  # what follows may work in place

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return grad, None, None


def _first_marks(nodes: list[Any]) -> set[str]:
    """The marks that are met first on each way back from `nodes`."""
    marks, seen = set(), set(nodes)
    while nodes:
        node = nodes.pop()
        if hasattr(node, "norm_name"):
            marks.add(node.norm_name)
            continue
        new = {parent for parent, _ in node.next_functions if parent is not None} - seen
        seen |= new
        nodes.extend(new)
    return marks


def _tensors(value: Any) -> Iterator[Tensor]:
    """All tensors in nested tuples, lists and dictionaries."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _tensors(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _tensors(part)


_NORMS = (nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)


def _normalizes(module: nn.Module) -> bool:
    looks_like_it = hasattr(module, "running_mean") and hasattr(module, "eps")  # norms of other libraries
    return isinstance(module, _NORMS) or looks_like_it


def _has_affine(module: nn.Module) -> bool:
    return getattr(module, "weight", None) is not None
