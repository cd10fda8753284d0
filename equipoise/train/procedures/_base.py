"""What procedures share: a step of training of their own, for methods that no dial can express."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from torch import Tensor, nn

from ...core import Batch, EquipoiseError, Output, checks, signature_repr
from ...models import HeadFactory, Network
from ..objective import Terms

if TYPE_CHECKING:
    from ..loop import Run


class Procedure(nn.Module):
    """Decides what is minimised for a batch, where that needs more than one pass of one network.

    Its state (further networks, moving statistics) lives in parameters and buffers, so that a checkpoint has it; they
    have their final shapes after `begin`. Random numbers come from ``run.streams["mix"]``.
    """

    takes_mix = False  # whether a mixing can act beside it
    in_graphs = False  # whether the host decides no more of its step than `phase` tells: then a graph can have it
    networks = 1  # of the run's size, that its step trains
    peers: Sequence[Run] = ()  # those beside the run's own, trained by what `taught` says

    @property
    def phase(self) -> Hashable:
        """Which of its steps it takes in this epoch; another one is captured anew."""
        return None

    def adapt(self, network: Network, make_head: HeadFactory) -> Network:
        """The network to train, made from the recipe's before its weights are loaded or moved to a device."""
        return network

    def begin(self, run: Run) -> None:
        """Called once, when the run is built: `run.network`, `run.task`, `run.objective`, `run.streams` are there."""
        if run.mix is not None and not self.takes_mix:
            raise EquipoiseError(
                f"{run.recipe.procedure} makes its own passes, in which no mixing can act; leave out mix"
            )

    def start_epoch(self, run: Run, number: int) -> None:
        """Called before each epoch; `number` counts from 0."""

    def forward(self, run: Run, batch: Batch) -> Terms:
        """The terms of a batch of normalised inputs; `run.terms(batch)` is what happens without a procedure."""
        raise NotImplementedError

    def taught(self, run: Run, outs: Sequence[Output], batch: Batch, progress: Tensor) -> list[Terms]:
        """Where it has `peers`: the terms of the run and of each of them, from what their networks give."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        return signature_repr(self)


class Deferred(Procedure):
    """Acts from the first epoch that begins at or after `start`, a share of training. A subclass writes `switch`.

    Whether it acts is decided once an epoch, from the epoch's number: a step that read `run.progress` would wait for
    the device, and which networks pass over a batch cannot be chosen there.
    """

    in_graphs = True

    def __init__(self, start: float) -> None:
        super().__init__()
        self.start = checks.between("start", start, 0, 1)
        self.active = False

    @property
    def phase(self) -> bool:
        return self.active

    def begin(self, run: Run) -> None:
        super().begin(run)
        if self.start < 1 and not self._acts(run, run.plan.epochs - 1):
            raise EquipoiseError(
                f"{run.recipe.procedure} would never act: it starts at {self.start:g} of training, and the last of "
                f"{run.plan.epochs} epochs begins before that; train longer or start earlier"
            )

    def start_epoch(self, run: Run, number: int) -> None:
        self.active = self._acts(run, number)
        if self.active and not self._acts(run, number - 1):
            self.switch(run)

    def switch(self, run: Run) -> None:
        """Called once, before the first epoch in which it acts."""

    def _acts(self, run: Run, number: int) -> bool:
        return number / run.plan.epochs >= self.start  # as samplers have it
