"""What corrections do to logits: every one of them multiplies and shifts each class."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..core import full_precision


@dataclass(frozen=True)
class Affine:
    """logits (N, C) -> logits · scale + offset, both (C,) and float64.

    >>> Affine.none(2).then(Affine(torch.tensor([2.0, 1.0]), torch.tensor([0.0, 1.0])))(torch.tensor([[3.0, 4.0]]))
    tensor([[6., 5.]])
    """

    scale: Tensor
    offset: Tensor

    @staticmethod
    def none(num_classes: int) -> Affine:
        return Affine(torch.ones(num_classes, dtype=torch.float64), torch.zeros(num_classes, dtype=torch.float64))

    def __call__(self, logits: Tensor) -> Tensor:
        z = full_precision(logits)
        return z * self.scale.to(z) + self.offset.to(z)

    def then(self, later: Affine) -> Affine:
        return Affine(self.scale * later.scale, self.offset * later.scale + later.offset)

    @property
    def changes_nothing(self) -> bool:
        return bool((self.scale == 1).all() and (self.offset == 0).all())

    def fits_into(self, head: nn.Linear | None) -> bool:
        """Whether a last layer can do this by itself: it must have a bias where there is something to add."""
        return head is not None and (head.bias is not None or not bool(self.offset.any()))

    @torch.no_grad()
    def put_into(self, head: nn.Linear) -> None:
        """Change the weight and bias of the last layer so that its outputs are corrected."""
        head.weight.copy_(head.weight.double() * self.scale.to(head.weight.device)[:, None])
        if head.bias is not None:
            head.bias.copy_(self(head.bias.double()))


class CorrectedLogits(nn.Module):
    """A network whose logits are corrected, where its last layer cannot do it by itself."""

    def __init__(self, network: nn.Module, correction: Affine) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("scale", correction.scale.float())
        self.register_buffer("offset", correction.offset.float())

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x) * self.scale + self.offset
