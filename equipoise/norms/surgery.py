"""Exchanging the batch norms of any network."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..core import Spec
from ._base import Norm

__all__ = ["replace_norm"]

NormFactory = Callable[[int], nn.Module]
_AnyBatchNorm = nn.modules.batchnorm._BatchNorm


def replace_norm(network: nn.Module, factory: NormFactory | str) -> list[str]:
    """Put a norm made by `factory` in the place of every batch norm of `network`, in place.

    γ and β stay the same parameters, so an optimizer made before still holds them; eps, momentum, moving statistics,
    device, type and mode are taken over. A decay or momentum that was chosen stays: one that the text names, or that is
    not the default of what the function makes. A layer that others of the same network share is made once.

    Args:
        network: any module that contains `BatchNorm1d`, `2d`, `3d`, `SyncBatchNorm` or our norms.
        factory: a function of the number of channels, or text such as ``ghost(ghost_size=16)``.

    Returns:
        The names of the replaced modules. There being none is an error.

    >>> network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    >>> replace_norm(network, "ghost(ghost_size=16)")
    ['1']
    >>> network[1]
    GhostBatchNorm2d(num_features=4, ghost_size=16, eps=1e-05, decay=0.9)
    """
    make = _from_text(factory) if isinstance(factory, str) else factory
    modules = network.named_modules(remove_duplicate=False)
    norms = [(name, module) for name, module in modules if isinstance(module, _AnyBatchNorm)]
    if not norms:
        raise ValueError(f"{type(network).__name__} has no batch norm to replace")
    if norms[0][0] == "":
        raise ValueError(f"{type(network).__name__} is itself a norm; make the new one directly")
    made: dict[nn.Module, nn.Module] = {}
    for _, module in norms:
        if module not in made:
            new: Any = make(_channels(module))
            if hasattr(new, "momentum") and not _chooses_momentum(factory, new):
                new.momentum = module.momentum
            made[module] = _with_what_follows(module, _adopt(new, module))
    for name, module in norms:
        parent, _, last = name.rpartition(".")
        setattr(network.get_submodule(parent), last, made[module])
    return [name for name, _ in norms]


def _from_text(text: str) -> NormFactory:
    spec = Spec.parse(text)
    return lambda num_features: spec.build("norm", num_features=num_features)


def _chooses_momentum(factory: NormFactory | str, made: Any) -> bool:
    if isinstance(factory, str):
        return not {"decay", "momentum"}.isdisjoint(dict(Spec.parse(factory).params))
    defaults = {name: p.default for name, p in inspect.signature(type(made)).parameters.items()}
    usual = defaults["momentum"] if "momentum" in defaults else 1 - defaults.get("decay", 1.0)
    return made.momentum != usual


def _channels(module: Any) -> int:
    if not module.num_features:
        raise ValueError(f"{type(module).__name__} does not know its channels yet; run the network once before")
    return module.num_features


@torch.no_grad()
def _adopt(new: Any, old: Any) -> nn.Module:
    """`new` with the parameters, moving statistics and settings of `old`."""
    home = old.weight if old.weight is not None else old.running_mean
    if home is not None:
        new.to(home.device, home.dtype)
    for name in ("weight", "bias"):
        if hasattr(new, name):
            new.register_parameter(name, getattr(old, name))
    if hasattr(new, "affine"):
        new.affine = old.affine
    if hasattr(new, "eps"):
        new.eps = old.eps
    if old.running_mean is not None and getattr(new, "running_mean", None) is not None:
        _adopt_moving(new, *(old.moving() if hasattr(old, "moving") else (old.running_mean, old.running_var)))
        new.num_batches_tracked.copy_(old.num_batches_tracked)
    return new.train(old.training)


def _adopt_moving(new: Any, mean: Tensor, var: Tensor) -> None:
    if hasattr(new, "set_moving"):
        new.set_moving(mean, var)
    else:
        new.running_mean.copy_(mean)
        new.running_var.copy_(var)


def _with_what_follows(old: Any, new: nn.Module) -> nn.Module:
    """timm's batch norms end with an activation of their own, which must not get lost; of others we do not know."""
    known = (_AnyBatchNorm.forward, nn.SyncBatchNorm.forward)
    if isinstance(old, Norm) or type(old).forward in known or hasattr(old, "example_weight"):
        return new
    if not isinstance(getattr(old, "act", None), nn.Module):
        raise ValueError(
            f"{type(old).__name__} computes more than a batch norm, which its replacement would not; "
            "exchange it by hand"
        )
    return nn.Sequential(new, getattr(old, "drop", nn.Identity()), old.act)
