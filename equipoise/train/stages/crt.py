"""Classifier re-training."""

from __future__ import annotations

import copy

from torch import nn

from ...core import register
from ._base import Stage


@register("crt", kind="stage", year=2020, arxiv="1910.09217")
class ClassifierRetraining(Stage):
    r"""Trains a new head on the frozen features of a trained network, with class-balanced batches.

    .. math:: \min_{W, b} \; \mathbb{E}_{c \sim \mathrm{Uniform}} \; \mathbb{E}_{x \mid c} \; \ell(W f(x) + b, c)

    Args:
        epochs: 10, as in the paper.
        lr: peak learning rate, falling along a cosine to 0. The paper's 0.2 belongs to batches of 512; 0.05 is the same
            step for batches of 128.
        weight_decay: 5e-4, as in the paper.

    Differs from the paper: the released loop leaves the frozen backbone in training mode, so that the statistics of its
    norms drift to the balanced distribution; here they stay.

    Example:
        >>> head = ClassifierRetraining().renew(torch.nn.Linear(4, 3))
        >>> [(name, p.requires_grad) for name, p in head.named_parameters()]
        [('weight', True), ('bias', True)]

    Reference: Kang, Xie, Rohrbach, Yan, Gordo, Feng, Kalantidis. Decoupling Representation and Classifier for
    Long-Tailed Recognition. ICLR 2020.
    """

    def __init__(self, epochs: int = 10, lr: float = 0.05, weight_decay: float = 5e-4) -> None:
        super().__init__(epochs, lr, weight_decay)

    def renew(self, head: nn.Module) -> nn.Module:
        fresh = copy.deepcopy(head).requires_grad_(True)
        for module in fresh.modules():
            getattr(module, "reset_parameters", lambda: None)()
        return fresh
