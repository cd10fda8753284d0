"""Norms folded into the convolutions before them: the same outputs with fewer passes over the maps."""

from __future__ import annotations

from copy import deepcopy
from itertools import pairwise
from typing import TypeGuard, TypeVar

from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from ..norms import BatchNorm2d

M = TypeVar("M", bound=nn.Module)


def folded(network: M) -> M:
    """A copy for evaluation, in which a convolution does the work of the batch norm that follows it in a `Sequential`.

    Other norms stay, and those that examples are weighed in.
    """
    copy = deepcopy(network)
    for module in copy.modules():
        if isinstance(module, nn.Sequential):
            for place, (first, second) in enumerate(pairwise(list(module))):
                if type(first) is nn.Conv2d and _is_plain(second):
                    module[place], module[place + 1] = fuse_conv_bn_eval(first, second), nn.Identity()
    return copy


def _is_plain(norm: nn.Module) -> TypeGuard[nn.BatchNorm2d]:
    """Whether this is a batch norm that takes its moving averages and nothing else."""
    return (
        type(norm) in (nn.BatchNorm2d, BatchNorm2d)
        and not norm.training
        and norm.running_mean is not None
        and getattr(norm, "example_weight", None) is None
        and not norm._forward_pre_hooks
    )
