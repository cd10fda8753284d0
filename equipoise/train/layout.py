"""Which order of a batch's numbers in memory a network is fastest with on this CPU."""

from __future__ import annotations

import copy
import time

import torch
from torch import Tensor, nn

LAYOUTS = {"channels_last": torch.channels_last, "contiguous": torch.contiguous_format}
CLEARLY = 0.9  # of the time: the layout changes rounding, so a choice must not hang on noise
TRIALS = 3


def fastest_layout(network: nn.Module, inputs: Tensor) -> str:
    """The name in `LAYOUTS`: channels last, unless the other takes clearly less time for a step on `inputs`."""
    seconds = {name: _step_seconds(network, inputs, layout) for name, layout in LAYOUTS.items()}
    return "contiguous" if seconds["contiguous"] < CLEARLY * seconds["channels_last"] else "channels_last"


def _step_seconds(network: nn.Module, inputs: Tensor, layout: torch.memory_format) -> float:
    """The least time of a few forward and backward passes, on a copy."""
    copied = copy.deepcopy(network).to(memory_format=layout).train()  # type: ignore[call-overload]
    x, best = inputs.contiguous(memory_format=layout), float("inf")
    for _ in range(1 + TRIALS):  # the first prepares the convolutions
        began = time.perf_counter()
        copied(x).sum().backward()
        best = min(best, time.perf_counter() - began)
    return best
