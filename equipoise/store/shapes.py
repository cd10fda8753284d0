"""What a value of a JSON document must be; a ValueError says what stands there instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

from ..core.words import shown

T = TypeVar("T")


def text(value: Any) -> str:
    return value if isinstance(value, str) else _refuse(value, "a text")


def key(value: Any) -> str:
    """The name of a run's folder, and no way out of it."""
    plain = text(value).isascii() and value.isprintable() and not {"/", "\\"} & set(value)
    inside = plain and value and not value.startswith(".")
    return str(value) if inside else _refuse(value, "the key of a run")


def whole(value: Any) -> int:
    return value if type(value) is int else _refuse(value, "a whole number")


def number(value: Any) -> float:
    return (
        float(value) if isinstance(value, int | float) and not isinstance(value, bool) else _refuse(value, "a number")
    )


def truth(value: Any) -> bool:
    return value if isinstance(value, bool) else _refuse(value, "true or false")


def table(value: Any, read: Callable[[Any], T] = lambda v: v) -> dict[str, T]:
    given = value if isinstance(value, Mapping) else _refuse(value, "a table")
    return {text(name): read(inner) for name, inner in given.items()}


def recipe(value: Any) -> dict[str, Any]:
    """A recipe as plain data: its task and its plan, if they are told, are tables too, and say name and epochs."""
    given: dict[str, Any] = table(value)
    if given.get("plan") is not None:
        whole(table(given["plan"]).get("epochs", 0))
    if given.get("task") is not None:
        text(table(given["task"]).get("name", ""))
    return given


Key = Annotated[str, key]
RecipeTable = Annotated[dict[str, Any], recipe]


def items(value: Any, read: Callable[[Any], T]) -> tuple[T, ...]:
    given = value if isinstance(value, list | tuple) else _refuse(value, "a list")
    return tuple(read(item) for item in given)


def maybe(read: Callable[[Any], T]) -> Callable[[Any], T | None]:
    """The same, or null."""
    return lambda value: None if value is None else read(value)


def _refuse(value: Any, wanted: str) -> Any:
    raise ValueError(f"{shown(value, 40)} stands where {wanted} should")
