"""Ways to call a function of a tensor: plainly, in a mode, traced, mapped, differentiated in some manner."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from .tensors import Named

Function = Callable[[Tensor], Tensor]


class _Functions(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class _Operations(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Outcome(NamedTuple):
    """What came of a call: the value, and the slope of its product with the weights where the way has one."""

    value: Tensor
    slope: Tensor | None = None


def _like(value: Tensor, weights: Tensor) -> Tensor:
    """As many of the weights as there are values."""
    return weights[: value.numel()].view(value.shape).to(value.device, value.dtype)


def forward(f: Function, x: Tensor, weights: Tensor) -> Outcome:
    return Outcome(f(x))


def backward(f: Function, x: Tensor, weights: Tensor) -> Outcome:
    x = x.detach().requires_grad_()
    value = f(x)
    return Outcome(value, *torch.autograd.grad(value, x, _like(value, weights)))


def graph(f: Function, x: Tensor, weights: Tensor) -> Outcome:
    x = x.detach().requires_grad_()
    value = f(x)
    (slope,) = torch.autograd.grad(value, x, _like(value, weights), create_graph=True)
    return Outcome(value, slope)


def batched_gradients(f: Function, x: Tensor, weights: Tensor) -> Outcome:
    x = x.detach().requires_grad_()
    value = f(x)
    given = _like(value, weights)
    (both,) = torch.autograd.grad(value, x, torch.stack([given, 2 * given]), is_grads_batched=True)
    return Outcome(value, both[0])


def func_grad(f: Function, x: Tensor, weights: Tensor) -> Outcome:
    def total(z: Tensor) -> tuple[Tensor, Tensor]:
        value = f(z)
        return (value * _like(value, weights)).sum(), value

    slope, value = torch.func.grad(total, has_aux=True)(x)
    return Outcome(value, slope)


def vmapped(f: Function, x: Tensor, weights: Tensor) -> Outcome:
    return Outcome(torch.func.vmap(f, randomness="same")(torch.stack([x, x]))[1])


def functionalized(f: Function, x: Tensor, weights: Tensor) -> Outcome:
    return Outcome(torch.func.functionalize(f)(x))


def forward_mode(f: Function, x: Tensor, weights: Tensor) -> Outcome:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        return Outcome(forward_ad.unpack_dual(f(dual)).primal)


def traced(f: Function, x: Tensor, weights: Tensor) -> Outcome:
    if x.is_meta:
        raise NotImplementedError("PyTorch's tracer compares constants, which it cannot where they have no numbers")
    return Outcome(torch.jit.trace(f, (torch.randn_like(x),), check_trace=False)(x))


def proxied(f: Function, x: Tensor, weights: Tensor) -> Outcome:
    x = x.as_subclass(Tensor) if type(x) is Named else x  # it knows no subclasses: their numbers become constants
    return Outcome(make_fx(f)(torch.randn_like(x))(x))


def within(*contexts: Callable[[], contextlib.AbstractContextManager[Any]], way: Any = backward) -> Any:
    def call(f: Function, x: Tensor, weights: Tensor) -> Outcome:
        with contextlib.ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context())
            return way(f, x, weights)

    return call


WAYS: dict[str, Callable[[Function, Tensor, Tensor], Outcome]] = {
    "forward": forward,
    "backward": backward,
    "backward with a graph": graph,
    "gradients in a batch": batched_gradients,
    "func.grad": func_grad,
    "vmap": vmapped,
    "functionalize": functionalized,
    "forward mode": forward_mode,
    "jit.trace": traced,
    "make_fx": proxied,
    "no_grad": within(torch.no_grad, way=forward),
    "inference mode": within(torch.inference_mode, way=forward),
    "function mode": within(_Functions),
    "dispatch mode": within(_Operations),
    "autocast": within(lambda: torch.autocast("cpu", torch.bfloat16)),
    "default device as a context": within(lambda: torch.device("meta")),
    "anomaly mode": within(lambda: torch.autograd.set_detect_anomaly(True, check_nan=False)),
}
COMMON = ["backward", "forward"]  # drawn as often as all others together
