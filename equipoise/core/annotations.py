"""A value held against the annotation of its parameter, so that every method refuses the wrong type in one voice."""

from __future__ import annotations

import inspect
import math
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, Literal, Union

from .words import is_readable, shown

_LARGEST = 2**63 - 1  # PyTorch's whole numbers have 64 bits
_LARGEST_SINGLE = (2 - 2**-23) * 2.0**127  # and it computes in single precision


def fitted(name: str, value: Any, annotation: Any) -> Any:
    """`value` as `annotation` means it: 2 is 2.0 for a float, a list is a tuple; ValueError where it does not fit.

    An annotation that is none of bool, int, float, str, None, Literal, tuple and unions of them takes anything.

    >>> fitted("tau", 2, float | None), fitted("at", [0, 1], tuple[float, ...])
    (2.0, (0.0, 1.0))
    """
    choices = list(_choices(annotation))
    exact = [choice for choice in choices if type(value) is choice]  # int | float leaves 2 as it is
    for choice in exact or choices:
        try:
            return _as(choice, value)
        except _Unfit:
            continue
    wanted = " or ".join(_words(choice) for choice in choices)
    raise ValueError(
        f"{name} must be {wanted}, not {shown(value)}{', which is too large' if _is_too_large(value) else ''}"
    )


def annotation_of(parameter: inspect.Parameter) -> Any:
    """What is written at the parameter; where nothing is, the type of its default."""
    if parameter.annotation is not parameter.empty:
        return parameter.annotation
    return type(parameter.default) if isinstance(parameter.default, bool | int | float | str) else Any


def _is_too_large(value: Any) -> bool:
    if isinstance(value, int):
        return abs(value) > _LARGEST
    return isinstance(value, float) and _LARGEST_SINGLE < abs(value) < math.inf


class _Unfit(Exception):
    """The value is not of this type."""


def _choices(annotation: Any) -> Iterator[Any]:
    if typing.get_origin(annotation) in (Union, types.UnionType):
        for each in typing.get_args(annotation):
            yield from _choices(each)
    else:
        yield types.NoneType if annotation is None else annotation


def _as(choice: Any, value: Any) -> Any:
    if choice in _PLAIN:
        return _PLAIN[choice][0](value)
    if typing.get_origin(choice) is Literal:
        if any(type(value) is type(word) and value == word for word in typing.get_args(choice)):
            return value
        raise _Unfit
    if typing.get_origin(choice) is tuple:
        return _as_tuple(typing.get_args(choice), value)
    return value


def _as_tuple(inner: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _Unfit
    each = inner[:1] * len(value) if inner[1:] == (...,) else inner
    if len(each) != len(value):
        raise _Unfit
    try:
        return tuple(fitted("", part, annotation) for part, annotation in zip(value, each, strict=True))
    except ValueError:
        raise _Unfit from None


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise _Unfit


def _whole(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST:
        return value
    raise _Unfit


def _number(value: Any) -> float:
    if isinstance(value, float) and abs(value) <= _LARGEST_SINGLE:
        return value
    return float(_whole(value))


def _text(value: Any) -> str:
    if isinstance(value, str) and is_readable(value):
        return value
    raise _Unfit


def _nothing(value: Any) -> None:
    if value is not None:
        raise _Unfit


# type -> how a value becomes one, what one is called, and what several are
_PLAIN: dict[Any, tuple[Callable[[Any], Any], str, str]] = {
    bool: (_truth, "true or false", "of true or false"),
    int: (_whole, "a whole number", "whole numbers"),
    float: (_number, "a finite number", "finite numbers"),
    str: (_text, "printable text", "printable texts"),
    types.NoneType: (_nothing, "None", "None"),
}


def _words(choice: Any) -> str:
    if choice in _PLAIN:
        return _PLAIN[choice][1]
    inner = typing.get_args(choice)
    if typing.get_origin(choice) is Literal:
        return f"one of {', '.join(map(repr, inner))}"
    many = " or ".join(_PLAIN[each][2] if each in _PLAIN else "values" for each in _choices(inner[0]))
    return f"a list of {many}" if inner[1:] == (...,) else f"a list of {len(inner)} {many}"
