"""Which order of a batch's numbers in memory a network is fastest with on this CPU."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

LAYOUTS = {"channels_last": torch.channels_last, "contiguous": torch.contiguous_format}
CLEARLY = 0.8  # of the time: the layout changes rounding, so a choice must not hang on noise
TRIALS = 3  # at least; small networks, whose steps are short, have more
SECONDS = 0.3


def fastest_layout(network: nn.Module, inputs: Tensor) -> str:
    """The name in `LAYOUTS`: channels last, unless the other takes clearly less time for a step on `inputs`."""
    steps = {name: _step(network, inputs, layout) for name, layout in LAYOUTS.items()}
    best, began, trials = dict.fromkeys(steps, float("inf")), time.perf_counter(), 0
    while trials < TRIALS or time.perf_counter() - began < SECONDS:
        for name, step in steps.items():  # in turns, and the least of many: what disturbs one disturbs the other
            best[name] = min(best[name], step())
        trials += 1
    return "contiguous" if best["contiguous"] < CLEARLY * best["channels_last"] else "channels_last"


def _step(network: nn.Module, inputs: Tensor, layout: torch.memory_format) -> Callable[[], float]:
    """A forward and backward pass on a copy of the network, which gives its seconds."""
    copied = copy.deepcopy(network).to(memory_format=layout).train()  # type: ignore[call-overload]
    x = inputs.contiguous(memory_format=layout)

    def seconds() -> float:
        began = time.perf_counter()
        copied(x).sum().backward()
        return time.perf_counter() - began

    seconds()  # the first prepares the convolutions
    return seconds
