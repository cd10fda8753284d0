"""Any sampler over shards: the samples of its epoch in an order that reads few shards at a time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...core import checks
from .._base import Sampler, home
from ._visit import occurrence

WINDOW = 4_096  # samples


def shard_by_shard(order: Tensor, shards: Tensor, window: int, generator: torch.Generator) -> Tensor:
    """The samples of `order`, each as often as there, so that those of one shard come near each other.

    Shards take turns in random order. The first visit of a sample comes in its shard's turn; further visits, which a
    sampler gives to rare classes, come at random places of the epoch, because side by side they would all be seen at
    once. Then every visit moves back by a random number of places below `window`: what a shuffle buffer of that size
    does, without holding any sample.

    Args:
        order: the samples of an epoch (n,), as a sampler gives them.
        shards: the shard of each sample (N,), numbered from 0.
        window: 1 or more; the samples that follow each other are spread over so many places.
        generator: on the device of `order`.
    """
    n, device = len(order), order.device
    own_shard = shards.to(device)[order]
    turn = torch.randperm(int(own_shard.max()) + 1, generator=generator, device=device)[own_shard]
    is_repeat = occurrence(order) > 0
    by_turn = turn.masked_fill(is_repeat, len(turn)).argsort(stable=True)  # first visits shard by shard, then repeats
    place = torch.empty(n, dtype=torch.float64, device=device)
    place[by_turn] = torch.arange(n, dtype=torch.float64, device=device) * n / (~is_repeat).sum()  # over all the epoch
    anywhere, back = torch.rand(2, n, dtype=torch.float64, generator=generator, device=device)
    place = torch.where(is_repeat, anywhere * n, place) + back * window
    return order[place.argsort()]


class ShardSampler(Sampler):
    """Visits the samples of another sampler's epochs shard by shard, see `shard_by_shard`.

    What is drawn, how often, and its class shares are the other sampler's; so are splitting over processes and going
    on in mid-epoch.

    Args:
        sampler: one of ours; its seed counts.
        shards: the shard of each sample (N,), numbered from 0: `ShardDataset.shards`.
        window: how many samples a shuffle buffer would hold.
        rank: which of the `num_replicas` processes this is; both as the process group says unless told.

    Example:
        >>> from .class_balanced import ClassBalancedSampler
        >>> labels = torch.tensor([0, 0, 0, 1, 0, 0, 0, 1])
        >>> sampler = ShardSampler(ClassBalancedSampler(labels), shards=[0, 0, 0, 0, 1, 1, 1, 1], window=1)
        >>> labels[list(sampler)].bincount()
        tensor([4, 4])
    """

    def __init__(
        self,
        sampler: Sampler,
        shards: Any,
        window: int = WINDOW,
        *,
        rank: int | None = None,
        num_replicas: int | None = None,
    ) -> None:
        super().__init__(sampler.labels, seed=sampler.seed, rank=rank, num_replicas=num_replicas)
        self.sampler, self.window = sampler, checks.whole("window", window, 1)
        self.shards = torch.as_tensor(shards, device=home(shards)).long()
        if self.shards.shape != self.labels.shape or bool((self.shards < 0).any()):
            raise ValueError(
                f"shards must be a number for each of the {len(self.labels)} samples, 0 or more, not of shape "
                f"{tuple(self.shards.shape)}"
            )

    @property
    def epoch_length(self) -> int:
        return self.sampler.epoch_length

    def set_epoch(self, epoch: int, progress: float | None = None) -> None:
        """Tell which epoch comes next, as the other sampler wants it."""
        self.sampler.set_epoch(epoch, progress)
        super().set_epoch(epoch, self.sampler._progress)

    def order(self, generator: torch.Generator, progress: float = 0.0) -> Tensor:
        return shard_by_shard(self.sampler.order(generator, progress), self.shards, self.window, generator)
