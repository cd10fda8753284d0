"""Losses whose value and slope a kernel finds in one call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, cast

import torch
from torch import Tensor

from .. import native
from ..core import full_precision
from ..native.losses import OF_CLASSES, Kernel

P = ParamSpec("P")
Formula = Callable[..., Tensor]  # logits (N, C), target (N,), parameters, and reduction= -> (N,) or a number
Draw = Callable[[Tensor, dict[str, Any]], dict[str, Any]]  # target and the parameters -> those that were drawn


def in_one_call(
    kernel: Kernel, *, draw: Draw | None = None, **options: str
) -> Callable[[Callable[P, Tensor]], Callable[P, Tensor]]:
    """Let a `kernel` compute the decorated formula where it can, with its slope, which autograd need not find then.

    ``@in_one_call(softmax_loss, gamma="gamma")``: the kernel's option on the left is the formula's parameter on the
    right. The kernels (`equipoise.native`) are for training on a CPU. Autograd makes more passes over the logits, and
    for few of them takes the time of a dozen operations instead of one. In all other cases, and for derivatives of the
    slope, the formula is what it says.

    The formula's first two parameters are `logits`, which it sees in float32 at least, and `target`, which it sees as
    int64; it has `reduction` by name. Parameters that are numbers of the classes (C,) it sees in the logits' type.
    `draw` draws parameters for the kernel from the others; the formula gets the same for a second derivative.
    """
    class_numbers = tuple(parameter for option, parameter in options.items() if option in OF_CLASSES)

    def decorate(function: Callable[P, Tensor]) -> Callable[P, Tensor]:
        formula: Formula = function
        by_name = _binder(formula)

        @wraps(formula)
        def loss(logits: Tensor, target: Tensor, *given: Any, reduction: str = "none", **named: Any) -> Tensor:
            logits = full_precision(logits)
            if target.dtype is not torch.int64:  # which all kernels take, PyTorch's and ours
                target = target.long()
            parameters = by_name(given, named)
            suits = logits.requires_grad and torch.is_grad_enabled() and native.suits(logits, labels=target)
            for name in class_numbers:
                numbers = parameters[name]
                if isinstance(numbers, Tensor):
                    parameters[name] = numbers = numbers.to(logits)
                    suits = suits and native.is_plain(numbers) and not numbers.requires_grad
            if not (suits and target.shape[0]):  # a slope is asked for, of the logits alone, and there are samples
                return formula(logits, target, reduction=reduction, **parameters)
            if draw is not None:
                parameters |= draw(target, parameters)
            kernels = {option: parameters[name] for option, name in options.items()}
            return _InOneCall.apply(logits, target, reduction, formula, parameters, kernel, kernels)

        return cast(Callable[P, Tensor], loss)

    return decorate


def _binder(formula: Formula) -> Callable[[tuple[Any, ...], dict[str, Any]], dict[str, Any]]:
    """A call's parameters by name, all but the first two and `reduction`: a tenth of the time of `Signature.bind`."""
    signature = inspect.signature(formula)
    parameters = [p for p in list(signature.parameters.values())[2:] if p.name != "reduction"]
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    # how many come before it; one that has to be named comes after all
    place = {p.name: i if p.name in positional else len(parameters) for i, p in enumerate(parameters)}

    def by_name(given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        found = {**defaults, **named}
        if given:
            found.update(zip(positional, given, strict=False))
        wrong = len(given) > len(positional) or len(found) < len(place)
        for name in named:
            wrong = wrong or place.get(name, -1) < len(given)  # unknown, or given twice
        if wrong:
            signature.bind(None, None, *given, **named)  # raises the error that a call of the formula would
        return found

    return by_name


class _InOneCall(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        target: Tensor,
        reduction: str,
        formula: Formula,
        parameters: dict[str, Any],
        kernel: Kernel,
        options: dict[str, Any],
    ) -> Tensor:
        value, slope = kernel(logits, target, reduction, **options)
        ctx.save_for_backward(logits, target, slope)
        ctx.reduction, ctx.formula, ctx.parameters = reduction, formula, parameters
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logits, target, slope = ctx.saved_tensors
        none = (None,) * 6
        if torch.is_grad_enabled():  # create_graph=True
            value = ctx.formula(logits, target, reduction=ctx.reduction, **ctx.parameters)
            return torch.autograd.grad(value, logits, grad, create_graph=True)[0], *none
        if ctx.reduction == "none":
            return slope * grad[:, None], *none
        if not native.suits(grad):  # several gradients at once, or somebody is watching
            return slope * grad, *none
        factor = grad.item()  # on the CPU, where nothing waits for it
        return slope if factor == 1 else slope * factor, *none
