"""What a network of anybody's says of batches, and its last layer if that is linear."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..core import EquipoiseError
from ..core.words import counted
from ..norms import example_weight


@dataclass(frozen=True)
class Outputs:
    """Logits (N, C) and labels (N,), both on the CPU."""

    logits: Tensor
    labels: Tensor

    @property
    def num_classes(self) -> int:
        return self.logits.shape[1]

    def at(self, rows: Tensor) -> Outputs:
        return Outputs(self.logits[rows], self.labels[rows])


def outputs_of(network: nn.Module, batches: Iterable[Sequence[Tensor]], alpha: float | None = None) -> Outputs:
    """What `network`, in evaluation mode, says of (inputs, target) batches; `alpha` is the example weight, if any."""
    logits, labels = [], []
    with ExitStack() as stack:
        if alpha is not None:
            stack.enter_context(example_weight(network, alpha))
        for batch in batches:
            inputs, target = _pair(batch)
            logits.append(_logits(network, inputs).cpu())
            labels.append(target.detach().cpu().long())
    if not logits:
        raise EquipoiseError("there is no batch of held-out data; give (inputs, target) pairs, or a folder")
    return _checked(Outputs(torch.cat(logits), torch.cat(labels)))


def logits_of(network: nn.Module, inputs: Iterable[Any]) -> Tensor:
    """The logits (M, C) of batches without labels; what comes with the inputs is not looked at."""
    every = [_logits(network, batch if isinstance(batch, Tensor) else batch[0]).cpu() for batch in inputs]
    if not every:
        raise EquipoiseError("there is no batch of unlabelled data; give tensors of inputs, or a folder")
    return torch.cat(every)


def _pair(batch: Any) -> tuple[Tensor, Tensor]:
    if not isinstance(batch, Sequence) or len(batch) < 2 or not all(isinstance(part, Tensor) for part in batch[:2]):
        raise EquipoiseError(f"held-out batches must be (inputs, target) pairs of tensors, not {type(batch).__name__}")
    if batch[1].dim() != 1 or len(batch[0]) != len(batch[1]):
        raise EquipoiseError(
            f"each input needs one label: got inputs of shape {tuple(batch[0].shape)} and labels of shape "
            f"{tuple(batch[1].shape)}"
        )
    return batch[0], batch[1]


@torch.no_grad()
def _logits(network: nn.Module, inputs: Tensor) -> Tensor:
    try:
        out = network(inputs.to(device_of(network)))
    except Exception as error:  # a user's network may raise anything
        raise EquipoiseError(
            f"the network cannot take inputs of shape {tuple(inputs.shape)}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(out, Tensor) or out.dim() != 2 or len(out) != len(inputs):
        got = f"a tensor of shape {tuple(out.shape)}" if isinstance(out, Tensor) else type(out).__name__
        raise EquipoiseError(
            f"the network must give one row of logits for each of the {len(inputs)} inputs, and gives {got}; "
            "wrap it in a module that returns the logits alone"
        )
    return out.float()


def _checked(out: Outputs) -> Outputs:
    bad = int((~out.logits.isfinite().all(1)).sum())
    if bad:
        raise EquipoiseError(
            f"the network's logits are not finite for {counted(bad, 'input')} of {len(out.logits):,}; check the "
            "checkpoint, and the mean and standard deviation of images"
        )
    low, high = int(out.labels.min()), int(out.labels.max())
    if low < 0 or high >= out.num_classes:
        raise EquipoiseError(
            f"the network has {counted(out.num_classes, 'class', 'classes')}, numbered from 0, and the held-out data "
            f"has the label {low if low < 0 else high}"
        )
    return out


def device_of(network: nn.Module) -> torch.device:
    return next((tensor.device for tensor in [*network.parameters(), *network.buffers()]), torch.device("cpu"))


def head_name(network: nn.Module, inputs: Tensor) -> str | None:
    """The name of the linear layer whose output is the network's; None if something else comes last."""
    seen: dict[str, Any] = {}
    with ExitStack() as hooks:
        for name, module in _linear_layers(network):
            hooks.enter_context(module.register_forward_hook(lambda _, args, out, name=name: seen.update({name: out})))
        with torch.no_grad():
            logits = network(inputs.to(device_of(network)))
    return next((name for name, out in seen.items() if out is logits), None)


def _linear_layers(network: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    for name, module in network.named_modules():
        plain = isinstance(module, nn.Linear) and type(module).forward is nn.Linear.forward
        if plain and "weight" in module._parameters:  # not made of others by a parametrization
            yield name, module
