"""Gradients of a batch that passes through the network in parts, for batches larger than memory."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from .objective import Terms


class Gradients:
    """Sums the gradients of a batch's parts, and divides them by what the parts count together.

    A part counts 1, or the sum of its weights where the weighting divides by that of the whole batch; so the result is
    the gradient of the whole batch. A batch in one part has its gradients untouched.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], parts: int) -> None:
        self.parameters, self.parts = list(parameters), parts
        self._one: Tensor | None = None  # the gradient of a loss by itself
        self._loss: Tensor | float = 0.0
        self._weight: Tensor | float = 0.0

    def add(self, terms: Terms) -> None:
        """Add the gradients of a part."""
        if self.parts == 1:
            if self._one is None:
                self._one = torch.ones_like(terms.total)  # which PyTorch would make at every step
            terms.total.backward(self._one)
            self._loss = terms.total.detach()
            return
        loss = terms.total * terms.weight
        loss.backward()
        self._loss, self._weight = self._loss + loss.detach(), self._weight + terms.weight

    def take(self) -> Tensor:
        """Leave the gradients of the whole batch in the parameters, give its loss, and be ready for the next."""
        loss, weight = self._loss, self._weight
        self._loss = self._weight = 0.0
        assert isinstance(loss, Tensor), "a step without a batch"
        if self.parts == 1:
            return loss
        torch._foreach_div_([p.grad for p in self.parameters if p.grad is not None], weight)
        return loss / weight
