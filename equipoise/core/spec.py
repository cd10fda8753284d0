"""`Spec`: a method's name with parameters, as text, and the object that is built from it."""

from __future__ import annotations

import ast
import inspect
import warnings
from dataclasses import dataclass
from typing import Any

from .annotations import annotation_of, fitted
from .errors import EquipoiseError
from .registry import Card, card
from .words import cut, shown


@dataclass(frozen=True)
class Spec:
    """A name with parameters, as text: ``focal(gamma=2.0)``. Literals and keywords only.

    >>> Spec.parse("focal(gamma=2)")
    Spec('focal(gamma=2)')
    >>> Spec.parse("focal(gamma=2)").resolved("loss")
    Spec('focal(gamma=2.0)')
    """

    name: str
    params: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Read ``name`` or ``name(key=literal, …)``."""
        if not isinstance(text, str):
            raise EquipoiseError(f"expected text such as 'focal(gamma=2.0)', not {shown(text)}")
        node = _parsed(text)
        if isinstance(node, ast.Name):
            return cls(node.id)
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            raise _unreadable(text)
        if node.args or any(k.arg is None for k in node.keywords):
            raise _unreadable(text, "parameters need their names; ")
        try:
            params = {str(k.arg): _frozen(ast.literal_eval(k.value)) for k in node.keywords}
        except (ValueError, TypeError, *_TOO_DEEP):
            raise _unreadable(text, "only literals may be given; ") from None
        return cls(node.func.id, tuple(params.items()))

    def __str__(self) -> str:
        inner = ", ".join(f"{k}={v!r}" for k, v in self.params)
        return f"{self.name}({inner})" if inner else self.name

    def __repr__(self) -> str:
        return f"Spec({str(self)!r})"

    def resolved(self, kind: str | None = None) -> Spec:
        """The same with defaults filled in, in the signature's order: equal methods become equal texts."""
        entry = card(self.name, kind)
        given = dict(self.params)
        for name in given.keys() - entry.parameters.keys():
            takes = ", ".join(entry.parameters) or "no parameters"
            raise EquipoiseError(f"{self.name} has no parameter {shown(name)}; it takes {takes}")
        full = {}
        for name, parameter in entry.parameters.items():
            if name not in given and parameter.default is parameter.empty:
                raise EquipoiseError(f"{self.name} needs {name}; write {self.name}({name}=…)")
            full[name] = self._fitted(name, parameter)
        return Spec(self.name, tuple(full.items()))

    def _fitted(self, name: str, parameter: inspect.Parameter) -> Any:
        """The parameter's value as its annotation means it, so that gamma=2 and gamma=2.0 are one recipe."""
        given = dict(self.params)
        try:
            return fitted(f"{name} of {self.name}", given.get(name, parameter.default), annotation_of(parameter))
        except ValueError as error:
            if name in given:
                raise EquipoiseError(str(error)) from None
            return parameter.default  # it may be what nobody can write

    def build(self, kind: str | None = None, **facts: Any) -> Any:
        """Make the object, giving it those of the `facts` that it names."""
        entry = card(self.name, kind)
        missing = [name for name in entry.facts if name not in facts and _is_required(entry, name)]
        if missing:
            raise TypeError(f"{self.name} must be told {', '.join(missing)}")
        known = {name: facts[name] for name in entry.facts if name in facts}
        try:
            return entry.factory(**known, **dict(self.resolved(kind).params))
        except EquipoiseError:
            raise
        except ValueError as error:
            raise EquipoiseError(f"{cut(str(self), 300)}: {error}") from error


def _is_required(entry: Card, name: str) -> bool:
    return inspect.signature(entry.factory).parameters[name].default is inspect.Parameter.empty


def _frozen(value: Any) -> Any:
    return tuple(_frozen(v) for v in value) if isinstance(value, list | tuple) else value


_LONGEST_TEXT = 200_000  # characters: a share for each of ten thousand classes has room
_TOO_DEEP = (RecursionError, MemoryError)  # what Python's parser says to parentheses in parentheses in …


def _parsed(text: str) -> ast.expr:
    if len(text) > _LONGEST_TEXT:
        raise _unreadable(text, f"it has {len(text):,} characters; ")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the parser, about backslashes: a Windows path has some
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, *_TOO_DEEP):
        raise _unreadable(text) from None


def _unreadable(text: str, why: str = "") -> EquipoiseError:
    return EquipoiseError(
        f"cannot read {shown(text)}: {why}write a name with keyword literals, such as focal(gamma=2.0)"
    )
