"""A document from what JSON gave: the types of a frozen dataclass's fields say what must stand there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass
from functools import cache, partial
from types import UnionType
from typing import Annotated, Any, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from .shapes import items, maybe, number, table, text, truth, whole

T = TypeVar("T")
Reader = Callable[[Any], Any]

_SIMPLE: dict[Any, Reader] = {str: text, int: whole, float: number, bool: truth, Any: lambda value: value}


class Filled:
    """What a frozen dataclass needs to be a document: JSON and back, by the types of its fields."""

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        return filled(cls, plain)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)  # type: ignore[call-overload]  # every subclass is a dataclass


def filled(kind: type[T], plain: Any, *, strict: bool = False) -> T:
    """An object of `kind`, whose fields are texts, numbers, truth values, tuples, dicts, such objects, or one or None.

    A field of type ``Annotated[type, read]`` is what `read` makes of it. Fields with a default may be absent unless
    `strict`, names it does not know are passed over; all else is a ValueError that says where it is.
    """
    given: dict[str, Any] = table(plain)
    readers, required = _fields_of(kind, strict)  # type: ignore[arg-type]  # classes can be hashed
    if lacking := [name for name in required if name not in given]:
        raise ValueError(f"{', '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not in it")
    return kind(**{name: _read(name, given, read) for name, read in readers.items() if name in given})


def _read(name: str, given: dict[str, Any], read: Reader) -> Any:
    try:
        return read(given[name])
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


@cache
def _fields_of(kind: Any, strict: bool) -> tuple[dict[str, Reader], tuple[str, ...]]:
    """The reader of each field, and the names of those that must be there."""
    hints = get_type_hints(kind, include_extras=True)
    required = (f.name for f in fields(kind) if strict or (f.default is MISSING and f.default_factory is MISSING))
    return {f.name: _reader(hints[f.name], strict) for f in fields(kind)}, tuple(required)


def _reader(wanted: Any, strict: bool) -> Reader:
    if get_origin(wanted) is Annotated:
        return wanted.__metadata__[0]
    if wanted in _SIMPLE:
        return _SIMPLE[wanted]
    if isinstance(wanted, type) and is_dataclass(wanted):
        return partial(filled, wanted, strict=strict)
    inner = get_args(wanted)
    if get_origin(wanted) is tuple:
        return partial(items, read=_reader(inner[0], strict))
    if get_origin(wanted) in (dict, Mapping):
        return partial(table, read=_reader(inner[1], strict))
    if get_origin(wanted) in (Union, UnionType):
        return maybe(_reader(inner[0], strict))
    raise TypeError(f"a document has no field of type {wanted}")
