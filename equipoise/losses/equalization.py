"""Softmax equalization loss."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from .. import checks
from ..core import full_precision, register
from ._base import FusedLoss
from ._softmax import cross_entropy, many

HUGE = 1e38  # taken from a logit that is left out: e^z is 0 then, and so is its slope
TABLE = 2**20


def equalization_loss(
    logits: Tensor,
    target: Tensor,
    rare: Tensor,
    gamma: float = 0.9,
    *,
    generator: torch.Generator | None = None,
    reduction: str = "none",
) -> Tensor:
    """Softmax equalization loss: logits (N, C), target (N,), rare (C,) of bools -> (N,). See `EqualizationLoss`."""
    logits = full_precision(logits)
    rare = rare.to(logits)
    left_out = draw(logits, gamma, generator).scatter_(1, target[:, None], 0)
    return cross_entropy(logits, target, reduction, lambda z: z.addcmul(left_out, rare))


def draw(logits: Tensor, gamma: float, generator: torch.Generator | None = None) -> Tensor:
    """(N, C): far below 0 with probability `gamma`, otherwise 0.

    A CPU draws a random number in the time of five logits' softmax. Where there are many logits, a sample therefore
    gets a stretch of a table of 2^20 draws that is always the same, from a random place on: samples are independent
    of each other, and the classes of a sample as far as the table's neighbours are.
    """
    n, c = logits.shape
    if not many(logits) or c > TABLE // 2 or torch.compiler.is_compiling():
        uniform = torch.rand(n, c, generator=generator, dtype=logits.dtype, device=logits.device)
        return uniform.sub_(gamma).clamp_max_(0).mul_(HUGE)
    starts = torch.randint(TABLE - c + 1, (n,), generator=generator)
    return _table(gamma, logits.dtype).unfold(0, c, 1).index_select(0, starts)


@lru_cache(maxsize=4)
def _table(gamma: float, dtype: torch.dtype) -> Tensor:
    order = torch.randperm(TABLE, generator=torch.Generator().manual_seed(0))
    return torch.where(order < round(gamma * TABLE), -HUGE, 0.0).to(dtype)


@register(
    "equalization",
    kind="loss",
    year=2020,
    arxiv="2003.05176",
    neutral={"gamma": 0.0},
    space={"threshold": {"values": (0.005, 0.016, 0.05), "scale": "log", "high": 1.0}},
)
class EqualizationLoss(FusedLoss):
    r"""Cross-entropy in which most samples of other classes leave the logits of rare classes alone.

    .. math:: \ell(z, y) = -\log \frac{e^{z_y}}{\sum_k w_k e^{z_k}}, \qquad
        w_k = 1 - \beta_k \, [n_k / \sum_j n_j < \lambda] \, [k \ne y], \quad \beta_k \sim \mathrm{Bernoulli}(\gamma)

    Args:
        class_counts: training images of each class (C,). A class with 0 is rare.
        gamma: how often a rare class is left out; 0 gives cross-entropy. 0.9 is the paper's.
        threshold: lambda, the share of the training images below which a class is rare; 0.005 suits CIFAR-100, 0.05
            CIFAR-10, where 0.005 calls few classes rare.

    Each sample and class is drawn anew at each call, from the attribute `generator` or, where that is None, from
    PyTorch's global one. A large batch on a CPU takes its draws from a table, from a random place on for each sample.

    Differs from the paper: nothing known. The sum is formed in log-space; the public code exponentiates bare logits.
    This is the softmax form for classification, not the sigmoid form for detection.

    Example:
        >>> EqualizationLoss([99, 1], gamma=1.0, threshold=0.05)(torch.tensor([[0.0, 9.0]]), torch.tensor([0]))
        tensor(0.)

    Reference: Tan, Wang, Li, Li, Ouyang, Yin, Yan. Equalization Loss for Long-Tailed Object Recognition. CVPR 2020.
    """

    class_counts: Tensor
    rare: Tensor
    generator: torch.Generator | None = None

    def __init__(
        self, class_counts: checks.Counts, gamma: float = 0.9, threshold: float = 0.005, *, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction, class_counts)
        self.gamma = checks.between("gamma", gamma, 0, 1)
        self.threshold = checks.between("threshold", threshold, 0, 1)
        self.register_buffer("rare", self.class_counts.double() / self.class_counts.sum() < threshold)

    def derived(self) -> Tensor:
        return self.rare.double()

    def reduced(self, logits: Tensor, target: Tensor, reduction: str) -> Tensor:
        logits = full_precision(logits)
        rare = self.ready(logits)
        return equalization_loss(logits, target, rare, self.gamma, generator=self.generator, reduction=reduction)
