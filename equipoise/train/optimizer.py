"""The optimizer that a plan asks for. Its learning rates live on the device, one for each group of parameters."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..models import Network
from ..norms import decay_groups
from .plan import Plan


def make_optimizer(network: Network, plan: Plan, device: torch.device) -> tuple[torch.optim.Optimizer, Rates]:
    """What moves the weights that are not frozen, and the rates that it moves them by."""
    decay, towards = float(plan.weight_decay or 0), plan.affine_towards
    groups = decay_groups(network, decay, affine=plan.affine_decay, final=plan.final_decay, towards=towards)
    if plan.train == "head":
        groups = [{**group, "params": [p for p in group["params"] if p.requires_grad]} for group in groups]
    groups = _by_depth(groups, network, plan.layer_decay)
    rates = Rates([group.pop("factor") for group in groups], device)
    optimizer: torch.optim.Optimizer
    if plan.optimizer == "adamw":
        in_graphs = device.type == "cuda"
        betas = (plan.momentum, 0.999)
        optimizer = torch.optim.AdamW(groups, lr=rates.base, betas=betas, fused=True, capturable=in_graphs)
    else:
        optimizer = torch.optim.SGD(groups, lr=rates.base, momentum=plan.momentum, nesterov=plan.nesterov, fused=True)
    rates.show(optimizer)
    return optimizer, rates


class Rates:
    """The learning rate now (`base`), and that times each group's factor."""

    def __init__(self, factors: list[float], device: torch.device) -> None:
        self.base = torch.zeros((), dtype=torch.float32, device=device)
        self.factors = torch.tensor(factors, dtype=torch.float32, device=device)
        self.values = torch.zeros_like(self.factors)

    def show(self, optimizer: torch.optim.Optimizer) -> None:
        """Let the optimizer read them here."""
        for group, rate in zip(optimizer.param_groups, self.values.unbind(), strict=True):
            group["lr"] = rate

    def set(self, rate: Tensor) -> None:
        self.base.copy_(rate)
        torch.mul(self.factors, self.base, out=self.values)


def depths(network: Network) -> dict[nn.Parameter, int]:
    """How far each parameter is from the head: 0 in the head, 1 in the last stage; what is in no stage, as the first.

    >>> from equipoise.models import create_model
    >>> sorted(set(depths(create_model("cnn_small", num_classes=3)).values()))
    [0, 1, 2, 3, 4]
    """
    depth_of = dict.fromkeys(network.parameters(), len(network.stages))
    for depth, name in enumerate(("head", *reversed(network.stages))):
        depth_of |= dict.fromkeys(network.get_submodule(name).parameters(), depth)
    return depth_of


def _by_depth(groups: list[dict[str, Any]], network: Network, layer_decay: float) -> list[dict[str, Any]]:
    """The groups, each cut into those of one depth, with the `factor` of their learning rate: layer_decay^depth."""
    if layer_decay == 1:
        return [{**group, "factor": 1.0} for group in groups]
    depth = depths(network)
    return [
        {**group, "params": [p for p in group["params"] if depth[p] == d], "factor": layer_decay**d}
        for group in groups
        for d in sorted({depth[p] for p in group["params"]})
    ]
