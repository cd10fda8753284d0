"""What others turn norms into: other layers, and nodes of a graph."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import nn
from torch.fx import Proxy


def as_leaf(norm: nn.Module, x: Proxy) -> Any:
    """What torch.fx records: one call of the norm, as of PyTorch's own modules."""
    return x.tracer.create_proxy("call_module", x.tracer.path_of_module(norm), (x,), {})  # type: ignore[attr-defined]


def not_scriptable(norm: nn.Module) -> NotImplementedError:
    """The error for torch.jit.script, which reads the source of all that a module calls."""
    name = type(norm).__name__
    return NotImplementedError(f"torch.jit.script cannot compile {name}; torch.export, torch.jit.trace and ONNX can")


def refuse_conversion(norm: Any) -> None:
    """Called by what `running_var` calls: stop functions that would turn `norm` into what computes something else.

    Ours are batch norms by class, so `convert_sync_batchnorm` takes them for such, and `fuse_conv_bn_eval` whatever it
    is given. They ask nothing of a norm but its numbers; so the numbers ask who asks. A ghost norm may be fused, since
    its inference is that of batch norm, but not become one that trains on the whole batch.
    """
    if torch.compiler.is_compiling():
        return
    asking = sys._getframe(2).f_code.co_name
    fuses, converts = ("fuse" in asking and "bn" in asking), ("convert" in asking and "batchnorm" in asking)
    if not (fuses or converts):
        return
    channels_share = hasattr(norm, "block") and norm.block().groups < norm.num_features
    trains_as_batch_norm = isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d)
    weight = norm.example_weight
    weighs = bool(weight) or weight != getattr(norm, "own_example_weight", weight)
    if weighs or channels_share or not (fuses or trains_as_batch_norm):
        off, other = "set_example_weight(network, None)", "replace_norm(network, nn.BatchNorm2d)"
        what = f"{type(norm).__name__} with an example weight of {weight:g}" if weighs else type(norm).__name__
        raise TypeError(
            f"{asking} would lose what {what} does beyond batch norm; where that is meant, "
            f"call {off if trains_as_batch_norm else other} before"
        )
