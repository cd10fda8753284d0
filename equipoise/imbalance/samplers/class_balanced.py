"""Class-balanced sampling."""

from __future__ import annotations

import torch
from torch import Tensor

from ...core import register
from ._visit import QuotaSampler


@register("class_balanced", kind="sampler", year=2020, arxiv="1910.09217")
class ClassBalancedSampler(QuotaSampler):
    r"""Visits every class equally often; an epoch is as long as the data.

    .. math:: p_c = 1 / C

    Args:
        labels: the class of each sample. A class that does not occur is left out.
        start: share of training after which it acts; until then sampling is uniform. Deferred re-sampling is 0.8.
        epochs: how many there are; in one's own loop `start` needs it, or ``set_epoch(epoch, progress=…)``.
        seed: of the order. With `rank` and `num_replicas` for use in one's own loop.

    Differs from the paper: each class has the same number of places in every epoch, to within one, instead of
    drawing a class for each place; within a class no sample comes twice before all have come. So an epoch has the
    same composition each time, and rare samples are seen equally often.

    Example:
        >>> labels = torch.tensor([0, 0, 0, 0, 0, 1])
        >>> labels[list(ClassBalancedSampler(labels))].bincount()
        tensor([3, 3])

    Reference: Kang, Xie, Rohrbach, Yan, Gordo, Feng, Kalantidis. Decoupling Representation and Classifier for
    Long-Tailed Recognition. ICLR 2020.
    """

    def shares(self, counts: Tensor, progress: float) -> Tensor:
        return torch.ones_like(counts)
