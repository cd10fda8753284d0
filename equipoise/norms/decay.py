"""Which parameters are decayed, how strongly, and towards what."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from ..core import checks

__all__ = ["decay_groups", "is_norm", "pull_towards_one"]


def decay_groups(
    network: nn.Module, weight_decay: float, *, affine: bool = True, final: float = 0.0, towards: float = 0.0
) -> list[dict[str, Any]]:
    """Parameter groups for an optimizer, each with its `weight_decay` and what it decays towards.

    Args:
        network: any module. One that names a parameter in `no_decay`, such as a head with a prior bias, is obeyed.
        weight_decay: λ of the term λ/2 ‖w‖² on everything else.
        affine: False spares the γ and β of norms. Their decay helps where `unshielded_affine` names many of them, as
            in residual networks, and the network overfits.
        final: added on the weight of the last layer: the network's `head`, or its last `Linear`.
        towards: 1 makes the decay of γ λ/2 ‖γ - 1‖²; β decays to 0 as ever. The groups of γ then carry
            ``decay_towards=1``: call `pull_towards_one` before each step of the optimizer. Summers and Dinneen found
            no difference between 0 and 1.

    Reference: Summers, Dinneen. Four Things Everyone Should Know to Improve Batch Normalization. ICLR 2020.
    """
    if towards not in (0, 1):
        raise ValueError(f"towards must be 0 or 1, not {towards!r}")
    checks.at_least("weight_decay", weight_decay, 0)
    kinds: dict[nn.Parameter, tuple[float, float]] = {}  # strength and aim
    for module in network.modules():
        spared = set(getattr(module, "no_decay", ()))
        for name, parameter in module.named_parameters(recurse=False):
            off = name in spared or (not affine and is_norm(module))
            aim = towards if is_norm(module) and name == "weight" and not off else 0.0
            kinds[parameter] = (0.0 if off else weight_decay, aim)
    if final:
        for name, parameter in _last_layer(network).named_parameters():
            if name.endswith("weight"):
                kinds[parameter] = (kinds[parameter][0] + final, 0.0)
    return [
        {
            "params": [p for p, kind in kinds.items() if kind == (strength, aim)],
            "weight_decay": strength,
            "decay_towards": aim,
        }
        for strength, aim in sorted(set(kinds.values()))
    ]


@torch.no_grad()
def pull_towards_one(groups: Iterable[dict[str, Any]]) -> None:
    """Make the decay of the groups with ``decay_towards=1`` aim at 1: call it between backward and step.

    λ/2 ‖γ - 1‖² has the gradient λγ - λ. The optimizer adds λγ; this subtracts λ from the gradients. That is exact for
    SGD, with momentum too, and any optimizer that adds its decay to the gradient. `groups` is its ``param_groups``.
    """
    for group in groups:
        if group.get("decay_towards") != 1 or not group["weight_decay"]:
            continue
        if grads := [p.grad for p in group["params"] if p.grad is not None]:
            torch._foreach_sub_(grads, group["weight_decay"])


def is_norm(module: nn.Module) -> bool:
    """Whether `module` normalizes: it has γ (`weight`, one number a channel) and an `eps`."""
    weight = getattr(module, "weight", None)
    return hasattr(module, "eps") and weight is not None and weight.dim() == 1


def _last_layer(network: nn.Module) -> nn.Module:
    head = getattr(network, "head", None)
    linear = [m for m in network.modules() if isinstance(m, nn.Linear)]
    if head is None and not linear:
        raise ValueError(f"{type(network).__name__} has neither a head nor a Linear layer for the final decay")
    return head if isinstance(head, nn.Module) else linear[-1]
