"""Uniform sampling."""

from __future__ import annotations

import torch
from torch import Tensor

from ...core import register
from .._base import Sampler


@register("uniform", kind="sampler")
class UniformSampler(Sampler):
    r"""Visits every sample once, in random order.

    .. math:: p_c = n_c / \textstyle\sum_k n_k

    Args:
        labels: the class of each sample.
        seed: of the order. With `rank` and `num_replicas` for use in one's own loop.

    Differs from the paper: nothing known; this is what training does when nothing is asked for.

    Example:
        >>> sorted(UniformSampler([0, 0, 1]))
        [0, 1, 2]

    Reference: Kang, Xie, Rohrbach, Yan, Gordo, Feng, Kalantidis. Decoupling Representation and Classifier for
    Long-Tailed Recognition. ICLR 2020, which calls it instance-balanced.
    """

    def order(self, generator: torch.Generator, progress: float = 0.0) -> Tensor:
        return torch.randperm(len(self.labels), generator=generator, device=generator.device)
