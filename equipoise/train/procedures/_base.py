"""What procedures share: a step of training of their own, for methods that no dial can express."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from ...core import Batch
from ..objective import Terms

if TYPE_CHECKING:
    from ..loop import Run


class Procedure(nn.Module):
    """Decides what is minimised for a batch, where that needs more than one pass of one network.

    Its state (further networks, moving statistics) lives in parameters and buffers, so that a checkpoint has it.
    """

    def begin(self, run: Run) -> None:
        """Called once, when the run is built: `run.network`, `run.task`, `run.objective`, `run.streams` are there."""

    def forward(self, run: Run, batch: Batch) -> Terms:
        """The terms of a batch of normalised inputs; `run.terms(batch)` is what happens without a procedure."""
        raise NotImplementedError
