"""Arrays of either kind: what is given as tensors is answered in tensors, everything else in numpy."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

# A numpy array, a sequence of numbers or a tensor: `either_kind` converts what is annotated so, and the body of the
# function has tensors, which a narrower type than Any could not say.
Array = Any

F = TypeVar("F", bound=Callable[..., Any])


def either_kind(function: F) -> F:
    """Let a function written for tensors take numpy arrays and sequences too, and answer in the same kind.

    With a tensor among its `Array` arguments all results stay tensors, on its device, a number as a 0-d tensor.
    Without one, tensors in the result become numpy arrays, and those of no dimension Python numbers; within tuples,
    lists, mappings and dataclasses too.
    """
    signature = inspect.signature(function)
    names = [name for name, parameter in signature.parameters.items() if "Array" in str(parameter.annotation)]

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        given = {name: value for name, value in bound.arguments.items() if name in names and value is not None}
        device = next((value.device for value in given.values() if isinstance(value, Tensor)), None)
        bound.arguments |= {name: as_tensor(value, device) for name, value in given.items()}
        result = function(*bound.args, **bound.kwargs)
        return result if device is not None else to_numpy(result)

    return wrapped  # type: ignore[return-value]


def as_tensor(value: Array, device: torch.device | None = None) -> Tensor:
    """A tensor of the values, without a gradient; what is a tensor already stays where it is."""
    if isinstance(value, Tensor):
        return value.detach()
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"expected an array of numbers, not of {array.dtype}")
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()  # torch wants memory it may write to, in rising order
    return torch.from_numpy(array).to(device)


def to_numpy(result: Any) -> Any:
    """The same result with numpy arrays and Python numbers in place of tensors."""
    if isinstance(result, Tensor):
        return result.cpu().numpy() if result.dim() else result.item()
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*map(to_numpy, result))
    if isinstance(result, tuple | list):
        return type(result)(map(to_numpy, result))
    if isinstance(result, Mapping):
        return {key: to_numpy(value) for key, value in result.items()}
    if is_dataclass(result) and not isinstance(result, type):
        return replace(result, **{field.name: to_numpy(getattr(result, field.name)) for field in fields(result)})
    return result


def double(x: Tensor) -> Tensor:
    """`x` in float64: sums over many samples are taken there."""
    return x.to(torch.float64)


def labels_of(labels: Tensor, count: int, num_classes: int | None = None) -> Tensor:
    """`labels` (N,) as int64, checked: one whole number for each of `count` samples, from 0 to num_classes - 1."""
    if labels.dim() != 1 or not len(labels):
        raise ValueError(f"labels must be one class index for each sample, not a value of shape {tuple(labels.shape)}")
    if labels.is_floating_point() or labels.dtype == torch.bool:
        raise ValueError(f"labels must be whole numbers, not {labels.dtype}")
    if len(labels) != count:
        raise ValueError(f"got {count} samples and {len(labels)} labels")
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or (num_classes is not None and high >= num_classes):
        runs = "" if num_classes is None else f"; with {num_classes} classes they run from 0 to {num_classes - 1}"
        raise ValueError(f"labels has class {low if low < 0 else high}{runs}")
    return labels.long()


def features_of(features: Tensor, name: str = "features") -> Tensor:
    """`features` as (N, d), further dimensions flattened; an error where they are empty or not finite."""
    if features.dim() < 2 or not features.numel():
        raise ValueError(f"{name} must have shape (N, d), not {tuple(features.shape)}")
    flat = features.flatten(1)
    if not bool(torch.isfinite(flat).all()):
        rows = int((~torch.isfinite(flat)).any(dim=1).sum())
        raise ValueError(
            f"{name} are not finite in {rows} of {len(flat)} rows; leave those out, or count the run as failed"
        )
    return flat
