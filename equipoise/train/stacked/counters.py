"""What runs count, for all of a stack at once: steps done, learning rates, losses, their places in the epoch's order.

Each run goes on looking at its own row, so that whatever else reads or sets these numbers need not know of the stack.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..loop import Run


class Counters:
    """Takes the counters of runs with as many steps an epoch and samples a batch each into rows of its tensors."""

    def __init__(self, runs: Sequence[Run]) -> None:
        first = runs[0]
        self.steps_per_epoch, self.batch_size, self.places = first.steps_per_epoch, first.batch_here, first.places
        self.done = torch.stack([run.done for run in runs])
        self.bad_step = torch.stack([run.bad_step for run in runs])
        self.loss_sum = torch.stack([run.loss_sum for run in runs])
        self.order = _rows([run.order for run in runs])
        self.lengths = torch.tensor([len(run.rates) for run in runs], device=first.device)
        self.rates = _rows([run.rates for run in runs])
        self.factors = _rows([run.rate.factors for run in runs])  # of a run's groups of parameters
        self.base, self.values = torch.stack([run.rate.base for run in runs]), torch.zeros_like(self.factors)
        self.index = torch.zeros(len(runs), self.batch_size, dtype=torch.int64, device=first.device)
        self.place, self.progress = torch.zeros_like(self.index), torch.zeros_like(self.base)
        for i, run in enumerate(runs):
            self._take_over(run, i)

    def _take_over(self, run: Run, i: int) -> None:
        run.done, run.bad_step, run.loss_sum = self.done[i], self.bad_step[i], self.loss_sum[i]
        run.order = self.order[i, : len(run.order)]
        run.rate.base = self.base[i]
        run.rate.values = self.values[i, : len(run.rate.values)]
        run.rate.show(run.optimizer)

    @torch.no_grad()
    def set_rates(self) -> None:
        """The learning rates of this step, and the share of training that is done."""
        torch.gather(self.rates, 1, self.done[:, None], out=self.base[:, None])
        torch.mul(self.factors, self.base[:, None], out=self.values)
        torch.div(self.done, self.lengths, out=self.progress)

    @torch.no_grad()
    def choose_samples(self) -> None:
        """Those of this step."""
        torch.add(self.places, (self.done % self.steps_per_epoch)[:, None], alpha=self.batch_size, out=self.place)
        torch.gather(self.order, 1, self.place, out=self.index)

    @torch.no_grad()
    def count(self, losses: Sequence[Tensor]) -> None:
        """One more step of each, as `Run.count` does."""
        loss = torch.stack(list(losses))
        first_bad = (self.bad_step < 0) & (loss - loss != 0)
        self.bad_step.copy_(torch.where(first_bad, self.done, self.bad_step))
        self.loss_sum += loss
        self.done += 1


def _rows(vectors: Sequence[Tensor]) -> Tensor:
    """Vectors as rows of one tensor, the shorter ones filled up with zeros, which nobody reads."""
    return torch.nn.utils.rnn.pad_sequence(list(vectors), batch_first=True)
