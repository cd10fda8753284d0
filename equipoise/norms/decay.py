"""Which parameters are decayed, and how strongly."""

from __future__ import annotations

from typing import Any

from torch import nn


def decay_groups(
    network: nn.Module, weight_decay: float, *, affine: bool = True, final: float = 0.0
) -> list[dict[str, Any]]:
    """Parameter groups for an optimizer, each with its `weight_decay`.

    `affine=False` spares the γ and β of normalization layers. `final` is added on the weight of the network's last
    layer (its `head` if it has one). A module that names a parameter in `no_decay`, such as a head's prior bias, is
    obeyed.
    """
    last = getattr(network, "head", None) or [m for m in network.modules() if isinstance(m, nn.Linear)][-1]
    strengths: dict[nn.Parameter, float] = {}
    for module in network.modules():
        spared = set(getattr(module, "no_decay", ()))
        for name, parameter in module.named_parameters(recurse=False):
            strength = weight_decay
            if name in spared or (not affine and is_norm(module)):
                strength = 0.0
            strengths[parameter] = strength
    if final:
        for name, parameter in last.named_parameters():
            if name.endswith("weight"):
                strengths[parameter] += final
    groups = sorted(set(strengths.values()))
    return [
        {"params": [p for p, s in strengths.items() if s == strength], "weight_decay": strength} for strength in groups
    ]


def is_norm(module: nn.Module) -> bool:
    """Whether `module` normalizes: it has γ (`weight`, one number a channel) and an `eps`."""
    weight = getattr(module, "weight", None)
    return hasattr(module, "eps") and weight is not None and weight.dim() == 1
