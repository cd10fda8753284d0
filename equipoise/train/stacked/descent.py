"""SGD for the bodies of all runs of a stack at once; heads, and runs with another optimizer, go on as alone."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..loop import Run
from .kernels import pointers
from .trunk import Trunk


class Rows(NamedTuple):
    """What a parameter is, as parts of the rows of its run."""

    weight: Tensor
    gradient: Tensor
    velocity: Tensor
    decay: Tensor


class DescentTable(ctypes.Structure):
    """`Descent` in trunk.cu."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("moves", "nesterov", "rate", "momentum", "decay"))


def is_plain(run: Run) -> bool:
    """Whether this run's weights all move by SGD with one learning rate, and decay to 0 if at all."""
    if type(run.optimizer) is not torch.optim.SGD or run.plan.layer_decay != 1:
        return False
    return all(group["decay_towards"] == 0 for group in run.optimizer.param_groups)


class Descent:
    """Moves the weights of those of `runs` that are plain; `rates` (run,) are the learning rates now."""

    def __init__(
        self, runs: Sequence[Run], rows: Mapping[Tensor, Rows], decay: Tensor, trunk: Trunk, rates: Tensor
    ) -> None:
        self.trunk, self.moves = trunk, [is_plain(run) for run in runs]
        for run in (run for run, moves in zip(runs, self.moves, strict=True) if moves):
            _take_velocities(run, rows)
        device = trunk.device
        self._held = (
            torch.tensor(self.moves, device=device),
            torch.tensor([run.plan.nesterov for run in runs], device=device),
            rates,
            torch.tensor([run.plan.momentum for run in runs], dtype=torch.float32, device=device),
            decay,
        )

    def step(self) -> None:
        if any(self.moves):
            self.trunk.move_weights(pointers(DescentTable, *self._held))


@torch.no_grad()
def _take_velocities(run: Run, rows: Mapping[Tensor, Rows]) -> None:
    """Let the optimizer keep the velocities of the run's body where the kernel reads them, 0 before the first step."""
    for group in run.optimizer.param_groups:
        for parameter in group["params"]:
            state = run.optimizer.state[parameter]
            velocity = rows[parameter].velocity if parameter in rows else torch.zeros_like(parameter)
            if state.get("momentum_buffer") is not None:
                velocity.copy_(state["momentum_buffer"])
            state["momentum_buffer"] = velocity  # the head's too: PyTorch wants those of all parameters, or none
            if parameter in rows:
                rows[parameter].decay.fill_(group["weight_decay"])
