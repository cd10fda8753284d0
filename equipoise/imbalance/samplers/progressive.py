"""Progressively balanced sampling."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ...core import register
from ._visit import QuotaSampler


@register("progressive", kind="sampler", year=2020, arxiv="1910.09217")
class ProgressiveSampler(QuotaSampler):
    r"""Goes from uniform to class-balanced sampling in the course of training.

    .. math:: p_c(t) = (1 - t) \, \frac{n_c}{\sum_k n_k} + t \, \frac1C

    with t from 0 to 1 the share of training that is done.

    Args:
        labels: the class of each sample.
        epochs: how many there are, for use in one's own loop: ``set_epoch(epoch)`` then tells t. Without it
            ``set_epoch(epoch, progress=t)`` does.
        seed: of the order. With `rank` and `num_replicas` for use in one's own loop.

    Differs from the paper: each class has its share of the places of every epoch, to within one, instead of
    drawing a class for each place; within a class no sample comes twice before all have come.

    Example:
        >>> labels = torch.tensor([0] * 9 + [1])
        >>> sampler = ProgressiveSampler(labels)
        >>> for progress in (0.0, 0.5, 1.0):
        ...     sampler.set_epoch(0, progress)
        ...     print(labels[list(sampler)].bincount())
        tensor([9, 1])
        tensor([7, 3])
        tensor([5, 5])

    Reference: Kang, Xie, Rohrbach, Yan, Gordo, Feng, Kalantidis. Decoupling Representation and Classifier for
    Long-Tailed Recognition. ICLR 2020.
    """

    follows_training = True

    def __init__(
        self,
        labels: Any,
        *,
        epochs: int | None = None,
        seed: int = 0,
        rank: int | None = None,
        num_replicas: int | None = None,
    ) -> None:
        super().__init__(labels, epochs=epochs, seed=seed, rank=rank, num_replicas=num_replicas)

    def shares(self, counts: Tensor, progress: float) -> Tensor:
        return (1 - progress) * counts / counts.sum() + progress / len(counts)
