"""Softmax equalization loss."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..core import checks, register
from ..native.losses import softmax_loss
from ._base import FusedLoss
from ._fused import in_one_call
from ._softmax import nll

__all__ = ["EqualizationLoss", "equalization_loss"]

HUGE = 1e38  # taken from a logit that is left out: e^z is 0 then, and so is its slope


def _row_seeds(target: Tensor, parameters: dict[str, Any]) -> dict[str, Any]:
    """One for each sample, by which the kernel draws."""
    return {"seeds": torch.empty_like(target).random_(0, 2**32, generator=parameters["generator"])}


@in_one_call(softmax_loss, rare="rare", left_out="gamma", seeds="seeds", draw=_row_seeds)
def equalization_loss(
    logits: Tensor,
    target: Tensor,
    rare: Tensor,
    gamma: float = 0.9,
    *,
    generator: torch.Generator | None = None,
    seeds: Tensor | None = None,
    reduction: str = "none",
) -> Tensor:
    """Softmax equalization loss: logits (N, C), target (N,), rare (C,) of bools -> (N,). See `EqualizationLoss`."""
    left_out = _uniform(logits, generator) < gamma if seeds is None else drawn_by(seeds, logits.shape[1], gamma)
    others = left_out.to(logits).scatter(1, target[:, None], 0.0)  # a label is never left out
    return nll(logits.addcmul(others, rare, value=-HUGE), target, reduction)


def _uniform(like: Tensor, generator: torch.Generator | None) -> Tensor:
    if generator is None:  # apart: with a generator, even None, PyTorch compiles `rand` for one batch size only
        return torch.rand_like(like, memory_format=torch.contiguous_format)
    return torch.rand(like.shape, generator=generator, dtype=like.dtype, device=like.device)


def drawn_by(seeds: Tensor, num_classes: int, gamma: float) -> Tensor:
    """(N, C) of bools, true with probability `gamma`: what the kernel draws for rows with these seeds."""
    h = (seeds[:, None] + torch.arange(num_classes, device=seeds.device) * 0x9E3779B9) % 2**32
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ (h >> shift)) * factor % 2**32
    return (h ^ (h >> 16)) >> 8 < int(gamma * 2**24)


@register(
    "equalization",
    kind="loss",
    year=2020,
    arxiv="2003.05176",
    neutral={"gamma": 0.0},
    space={"threshold": {"values": (0.005, 0.016, 0.05), "scale": "log", "high": 1.0}},
    examples=({"gamma": 1.0, "threshold": 0.1}, {"gamma": 0.0}, {"gamma": 1.0}),  # where nothing is left to chance
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
    PyTorch's global one. The kernel for the CPU draws a seed for each sample, and a hash of it decides for each class.

    Differs from the paper: nothing known. The sum is formed in log-space; the public code exponentiates bare logits.
    This is the softmax form for classification, not the sigmoid form for detection.

    Example:
        >>> EqualizationLoss([99, 1], gamma=1.0, threshold=0.05)(torch.tensor([[0.0, 9.0]]), torch.tensor([0]))
        tensor(0.)

    Reference: Tan, Wang, Li, Li, Ouyang, Yin, Yan. Equalization Loss for Long-Tailed Object Recognition. CVPR 2020.
    """

    class_counts: Tensor
    generator: torch.Generator | None = None

    def __init__(
        self, class_counts: checks.Counts, gamma: float = 0.9, threshold: float = 0.005, *, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction, class_counts)
        self.gamma = checks.between("gamma", gamma, 0, 1)
        self.threshold = checks.between("threshold", threshold, 0, 1)

    @property
    def rare(self) -> Tensor:
        """Which classes are (C,), as bools."""
        return self.derived(self.class_counts.double()).bool()

    def derived(self, counts: Tensor) -> Tensor:
        return (counts / counts.sum() < self.threshold).double()

    def reduced(self, logits: Tensor, target: Tensor, reduction: str) -> Tensor:
        rare = self.of_classes(logits)
        return equalization_loss(logits, target, rare, self.gamma, generator=self.generator, reduction=reduction)
