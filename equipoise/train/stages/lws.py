"""Learnable weight scaling."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...core import register
from ._base import Stage


class ScaledHead(nn.Module):
    """A frozen head whose logits are multiplied by one learned number for each class."""

    def __init__(self, head: nn.Module, num_classes: int) -> None:
        super().__init__()
        self.head = head.requires_grad_(False)
        self.scale = nn.Parameter(torch.ones(num_classes))

    def forward(self, features: Tensor) -> Tensor:
        return self.scale * self.head(features)


@register("lws", kind="stage", year=2020, arxiv="1910.09217")
class LearnableWeightScaling(Stage):
    r"""Learns one scale for each class of a trained network's logits, all else frozen, with class-balanced batches.

    .. math:: z_c = s_c \, (w_c \cdot f(x) + b_c)

    Args:
        epochs: 5, as in the released code.
        lr: peak learning rate, falling along a cosine to 0. The paper's 0.2 belongs to batches of 512; 0.05 is the same
            step for batches of 128.
        weight_decay: on the scales; 5e-4, as in the paper.

    Differs from the paper: it scales the weights alone; the released code scales the bias too, and so do we. The
    statistics of the frozen norms stay as they are (see `crt`).

    Example:
        >>> head = LearnableWeightScaling().renew(torch.nn.Linear(4, 3))
        >>> [name for name, p in head.named_parameters() if p.requires_grad]
        ['scale']

    Reference: Kang, Xie, Rohrbach, Yan, Gordo, Feng, Kalantidis. Decoupling Representation and Classifier for
    Long-Tailed Recognition. ICLR 2020.
    """

    def __init__(self, epochs: int = 5, lr: float = 0.05, weight_decay: float = 5e-4) -> None:
        super().__init__(epochs, lr, weight_decay)

    def renew(self, head: nn.Module) -> nn.Module:
        weight = head.get_parameter("weight")
        return ScaledHead(head, len(weight))
