"""A moving average of the weights, for evaluation."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from ..models import Network


class Average:
    """A copy of `network` that follows it: average ← decay · average + (1 − decay) · network, moving statistics too."""

    def __init__(self, network: Network, decay: float) -> None:
        self.network: Network = copy.deepcopy(network).requires_grad_(False)
        self.decay = decay
        self.follow(network)

    def follow(self, network: Network) -> None:
        """From now on the tensors that `network` has now: to be called when it was given others."""
        averaged, followed = _tensors(self.network), _tensors(network)
        moving = [n for n, t in averaged.items() if t.is_floating_point()]
        self._pairs = [averaged[n] for n in moving], [followed[n] for n in moving]
        counters = [n for n, t in averaged.items() if not t.is_floating_point()]
        self._counters = [averaged[n] for n in counters], [followed[n] for n in counters]

    @torch.no_grad()
    def update(self) -> None:
        torch._foreach_lerp_(*self._pairs, 1 - self.decay)
        if self._counters[0]:
            torch._foreach_copy_(*self._counters)


def _tensors(network: nn.Module) -> dict[str, Tensor]:
    return dict(network.named_parameters()) | dict(network.named_buffers())
