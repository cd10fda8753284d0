"""The processes that train one run together: what each of them does, and what passes between them.

A batch is the recipe's batch however many there are: each process has a share of it, and the step is that of the whole
batch wherever a method is defined over samples. Nothing that a checkpoint holds depends on their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import torch
from torch import Tensor, distributed, nn

from ..data import Split
from .accumulate import Gradients
from .objective import Terms
from .streams import Streams

T = TypeVar("T")


class Team:
    """A process that trains alone: nothing is divided, and there is nobody to ask. `Processes` are several."""

    rank, size = 0, 1
    checkpoint_epochs = 5  # from one checkpoint to the next

    @property
    def leads(self) -> bool:
        """Whether this process is the one that reads and writes for all."""
        return self.rank == 0

    def share(self, count: int) -> range:
        """Which of `count` things in a row are this process's; two shares differ by one thing at most."""
        return range(count * self.rank // self.size, count * (self.rank + 1) // self.size)

    def of_epoch(self, order: Tensor, part: int) -> Tensor:
        """This process's samples of an epoch in which `part` samples pass the network at a time."""
        return order

    def of_split(self, split: Split) -> Split:
        """This process's images of those that are to be predicted."""
        return split

    def gathered(self, rows: Tensor, count: int) -> Tensor:
        """The `count` rows of all processes, from those of each."""
        return rows

    def gradients(self, parameters: Iterable[nn.Parameter], parts: int) -> Gradients:
        """What sums the gradients of a batch of which this process has so many `parts`."""
        return Gradients(parameters, parts)

    def begin_epoch(self, streams: Streams, number: int) -> None:
        """Called before each epoch: several processes must not draw the same random numbers."""

    def average_buffers(self, network: nn.Module) -> None:
        """Let the moving statistics of all processes become one."""

    def told(self, find: Callable[[], T]) -> T:
        """What the leading process finds."""
        return find()


ALONE = Team()


class Processes(Team):
    """Those of PyTorch's process group, which must be there."""

    checkpoint_epochs = 1  # the epochs of a large training are long, and after a failure all begin at a checkpoint

    def __init__(self) -> None:
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()

    def of_epoch(self, order: Tensor, part: int) -> Tensor:
        """Its columns of the order, of which each row is what all processes together pass through the network."""
        rows = order[: len(order) // part * part].view(-1, part)
        mine = self.share(part)
        return rows[:, mine.start : mine.stop].flatten()

    def of_split(self, split: Split) -> Split:
        return split if self._is_too_small(len(split)) else split.take(torch.tensor(self.share(len(split))))

    def gathered(self, rows: Tensor, count: int) -> Tensor:
        if self._is_too_small(count):
            return rows
        shares = [count * (rank + 1) // self.size - count * rank // self.size for rank in range(self.size)]
        padded = torch.cat([rows, rows.new_zeros(max(shares) - len(rows), *rows.shape[1:])])  # all must be of one shape
        parts = [torch.empty_like(padded) for _ in shares]
        distributed.all_gather(parts, padded)
        return torch.cat([theirs[:share] for theirs, share in zip(parts, shares, strict=True)])

    def _is_too_small(self, count: int) -> bool:
        """Whether there are too few images to divide; every process then looks at all of them."""
        return count < self.size

    def gradients(self, parameters: Iterable[nn.Parameter], parts: int) -> Gradients:
        return SharedGradients(parameters, parts)

    def begin_epoch(self, streams: Streams, number: int) -> None:
        if self.size > 1:
            streams.begin_epoch(number, self.rank)

    @torch.no_grad()
    def average_buffers(self, network: nn.Module) -> None:
        moving = [buffer for buffer in network.buffers() if buffer.is_floating_point()]
        if self.size == 1 or not moving:
            return
        # in float64 the mean of equal numbers is that number: what does not move stays as it is, to the bit
        values = torch.cat([buffer.double().flatten() for buffer in moving])
        distributed.all_reduce(values)
        for buffer, mean in zip(moving, (values / self.size).split([b.numel() for b in moving]), strict=True):
            buffer.copy_(mean.view_as(buffer))

    def told(self, find: Callable[[], T]) -> T:
        answers = [find() if self.leads else None]
        distributed.broadcast_object_list(answers)
        return answers[0]  # type: ignore[return-value]


class SharedGradients(Gradients):
    """The same over the parts of all processes, which need not be of one size.

    A part counts as many samples as it has, or the sum of its weights where the weighting divides by that of the whole
    batch. All that passes between processes in a step is one message: gradients, loss and what was counted.
    """

    def add(self, terms: Terms) -> None:
        weight = terms.weight if isinstance(terms.weight, Tensor) else float(len(terms.per_sample))
        loss = terms.total * weight
        loss.backward()
        self._loss, self._weight = self._loss + loss.detach(), self._weight + weight

    def take(self) -> Tensor:
        loss, weight = self._loss, self._weight
        self._loss = self._weight = 0.0
        assert isinstance(loss, Tensor), "a step without a batch"
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        counted = torch.zeros_like(loss) + weight  # made on the device, for which nobody waits
        message = torch.cat([*(g.flatten() for g in gradients), loss.view(1), counted.view(1)])
        distributed.all_reduce(message)
        *means, loss, _ = (message / message[-1]).split([*(g.numel() for g in gradients), 1, 1])
        torch._foreach_copy_(gradients, [mean.view_as(g) for mean, g in zip(means, gradients, strict=True)])
        return loss.squeeze()
