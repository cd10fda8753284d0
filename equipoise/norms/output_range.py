"""How far the outputs of norms reach, in training and in inference, against the bound that training obeys."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .kernels.groups import Block, split_examples
from .kernels.modes import in_mode

__all__ = ["NormRange", "output_range"]


@dataclass
class NormRange:
    """Least and largest normalized value of one norm, before γ and β.

    `bound` is √(n - 1) for the n values that a statistic is taken over: none is farther from 0 in training.
    """

    name: str
    bound: float = 0.0
    training: tuple[float, float] = (math.inf, -math.inf)
    inference: tuple[float, float] = (math.inf, -math.inf)


def output_range(network: nn.Module, batches: Iterable[Any]) -> list[NormRange]:
    r"""The range of every batch norm's output in training and inference, as in figure 6 of the paper.

    An example that is normalized with statistics it had a part in stays within :math:`\pm\sqrt{n - 1}`; in inference
    nothing binds it. Example weighing (`set_example_weight`) narrows the gap. Values are taken before γ and β. The
    network, its moving averages included, is left as it was.

    Args:
        network: any module with batch norms or our norms.
        batches: inputs, or tuples that begin with them, as for training.

    >>> network = nn.Sequential(nn.BatchNorm2d(1))
    >>> output_range(network, [torch.tensor([0.0, 0.0, 0.0, 0.0, 9.0]).view(5, 1, 1, 1)])
    [NormRange(name='0', bound=2.0, training=(-0.49..., 1.99...), inference=(0.0, 8.99...))]

    Reference: Summers, Dinneen. Four Things Everyone Should Know to Improve Batch Normalization. ICLR 2020.
    """
    norms = {n: m for n, m in network.named_modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)}
    if not norms:
        raise ValueError(f"{type(network).__name__} has no batch norm")
    ranges = {name: NormRange(name) for name in norms}
    hooks = [module.register_forward_hook(_Watch(ranges[name], module)) for name, module in norms.items()]
    buffers = [(buffer, buffer.clone()) for buffer in network.buffers()]
    try:
        with torch.no_grad():
            for batch in batches:
                inputs = batch[0] if isinstance(batch, tuple | list) else batch
                for training in (True, False):
                    with in_mode(network, training):
                        network(inputs)
                    for buffer, before in buffers:
                        buffer.copy_(before)
    finally:
        for hook in hooks:
            hook.remove()
    return list(ranges.values())


class _Watch:
    """A forward hook that normalizes once more, without γ and β, and notes the range."""

    def __init__(self, seen: NormRange, module: Any) -> None:
        self.seen = seen
        self.bare = copy.deepcopy(module)
        self.bare._forward_hooks.clear()
        self.bare._forward_pre_hooks.clear()  # what comes to us has been through them
        for name in ("weight", "bias"):
            self.bare.register_parameter(name, None)

    def __call__(self, module: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        (x,) = inputs
        self.bare.load_state_dict(dict(module.named_buffers()), strict=False)  # its own have moved on in training
        low, high = (v.item() for v in self.bare.train(module.training)(x).aminmax())
        mode = "training" if module.training else "inference"
        old_low, old_high = getattr(self.seen, mode)
        setattr(self.seen, mode, (min(old_low, low), max(old_high, high)))
        self.seen.bound = max(self.seen.bound, math.sqrt(_values(module, x) - 1))


def _values(module: Any, x: Tensor) -> int:
    """How many values the largest block of the batch has."""
    block = module.block() if hasattr(module, "block") else Block(len(x), x.shape[1])
    each = x.shape[1:].numel() // block.groups
    size, blocks = split_examples(len(x), block.examples, 2 if block.alone else each)
    return max(size, len(x) - (blocks - 1) * size) * each
