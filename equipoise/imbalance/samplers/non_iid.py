"""Batches of a few classes each."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...core import checks, register
from ._visit import ClassSampler


@register("non_iid", kind="sampler", year=2020, arxiv="1906.03548")
class NonIIDSampler(ClassSampler):
    r"""Fills each batch with samples of a few classes only, which is hard on batch norm.

    .. math:: \text{batch} = \textstyle\bigcup_{i=1}^{k} \{B / k \text{ samples of class } c_i\}, \qquad
        c_i \sim \mathrm{Uniform}\{1, \dots, C\}

    Args:
        labels: the class of each sample. A class that does not occur is left out.
        classes: k, how many classes are drawn for a batch, with replacement, so that one can come twice; 4 as in the
            paper.
        batch_size: B, over all processes together; 128 as in the paper. Set it to the batch size of training.
        seed: of the order. With `rank` and `num_replicas` for use in one's own loop.

    Differs from the paper: it does not say whether a batch is shuffled; here it is, since the small groups of ghost
    batch norm would otherwise hold one class each. Within a class no sample comes twice before all have come. An
    epoch is as long as the data, so its last batch may be cut short.

    Example:
        >>> labels = torch.arange(10).repeat(20)
        >>> first_batch = list(NonIIDSampler(labels, classes=2, batch_size=8))[:8]
        >>> labels[first_batch].bincount().max()
        tensor(4)

    Reference: Summers, Dinneen. Four Things Everyone Should Know to Improve Batch Normalization. ICLR 2020.
    """

    composes_batches = True

    def __init__(
        self,
        labels: Any,
        classes: int = 4,
        batch_size: int = 128,
        *,
        seed: int = 0,
        rank: int | None = None,
        num_replicas: int | None = None,
    ) -> None:
        super().__init__(labels, seed=seed, rank=rank, num_replicas=num_replicas)
        self.classes = checks.whole("classes", classes, 1)
        self.batch_size = checks.whole("batch_size", batch_size, 1)
        if batch_size % classes:
            raise ValueError(f"batch_size must be a multiple of classes ({classes}), not {batch_size}")

    def place_classes(self, generator: torch.Generator, progress: float) -> Tensor:
        n, device = len(self.labels), generator.device
        batches = -(-n // self.batch_size)
        drawn = torch.randint(len(self._counts), (batches, self.classes), generator=generator, device=device)
        in_order = drawn.repeat_interleave(self.batch_size // self.classes, dim=1)
        shuffle = torch.rand(in_order.shape, dtype=torch.float32, generator=generator, device=device).argsort(1)
        return in_order.gather(1, shuffle).flatten()[:n]
