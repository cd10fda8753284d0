"""What every method of whatever kind must do to be found, read and told what to do."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import torch

from ..core import Card, EquipoiseError, Spec, card
from ..core.annotations import annotation_of
from ._cases import Case, cases_of, require, run
from .augments import check_augment
from .heads import check_head
from .losses import check_loss
from .mixes import check_mix
from .norms import check_norm
from .samplers import check_sampler
from .weightings import check_weighting

BY_KIND: dict[str, Callable[[Card | str], None]] = {
    "loss": check_loss,
    "weighting": check_weighting,
    "sampler": check_sampler,
    "norm": check_norm,
    "head": check_head,
    "mix": check_mix,
    "augment": check_augment,
}
SECTIONS = ("Differs from the paper:", "Example:", "Reference:")
TYPES = {"bool": bool, "int": int, "float": int | float, "str": str, "None": type(None), "tuple": tuple}
STRANGE: tuple[Any, ...] = (
    *(True, False, None, "x", "", "nul\0", (), (1,), (0.5, "x"), {}, {1}, b"x", 1j),
    *(-1, 0, 1, 3, 10**9, 10**30, 10**400, -(10**400), 0.5, -0.5, 1e300, -1e300, 1e-300, math.nan, math.inf, -math.inf),
)


def check_method(kind: str, name: str) -> None:
    """All there is to check of the method called `name`: `check_registration`, and what its kind must do."""
    entry = card(name, kind)
    check_registration(entry)
    if kind in BY_KIND:
        BY_KIND[kind](entry)


def check_registration(method: Card) -> None:
    """It explains itself, can be written as text, and refuses what its parameters cannot be."""
    run(CHECKS, cases_of(method, method.kind)[:1])


def its_docstring_says_what_it_must(case: Case) -> None:
    text = inspect.getdoc(case.card.factory) or ""
    require(case.card.summary.endswith("."), f"the docstring's first line, {case.card.summary!r}, is not one sentence")
    for section in SECTIONS:
        require(section in text, f"its docstring has no section {section!r}")
    for name in case.card.parameters:
        explained = any(line.strip().startswith(f"{name}: ") for line in text.splitlines())
        require(explained, f"its docstring does not explain {name}: write a line '{name}: …' under Args")


def every_parameter_has_an_annotation(case: Case) -> None:
    for name, parameter in case.card.parameters.items():
        require(parameter.annotation is not parameter.empty, f"{name} has no annotation")
        require(_types(case, name), f"{name} has an annotation without any of {', '.join(TYPES)}")


def examples_and_neutral_name_its_parameters(case: Case) -> None:
    for given in (*case.card.examples, case.card.neutral, case.card.space):
        unknown = set(given) - set(case.card.parameters)
        require(not unknown, f"{dict(given)} names {', '.join(sorted(unknown))}, which it does not take")


def a_parameter_is_what_its_annotation_says_or_a_sentence(case: Case) -> None:
    for name in case.card.parameters:
        types = _types(case, name)
        for value in STRANGE:
            fits = isinstance(value, types) and not (isinstance(value, bool) and bool not in types)
            for make in (_by_spec, _by_hand):
                try:
                    make(case, name, value)
                except ValueError as error:
                    _is_a_sentence(case, name, value, error, make is _by_spec)
                    continue
                require(fits, f"{make.__name__[1:]} took {name}={value!r}")
                finite = not isinstance(value, float | int) or math.isfinite(float(value))
                require(finite, f"{make.__name__[1:]} took {name}={value!r}")


def _is_a_sentence(case: Case, name: str, value: Any, error: ValueError, by_spec: bool) -> None:
    require(str(error), f"{name}={value!r} was refused without a word")
    require(not by_spec or isinstance(error, EquipoiseError), f"{name}={value!r} in a recipe raised {error!r}")
    named = name in str(error) or case.card.kind == "task"
    require(named, f"the error for {name}={value!r} does not name it: {error}")


def _types(case: Case, name: str) -> tuple[Any, ...]:
    """The types that the annotation names."""
    annotation = str(annotation_of(case.card.parameters[name]))
    return tuple(kind for word, kind in TYPES.items() if word in annotation)


def _by_spec(case: Case, name: str, value: Any) -> None:
    with torch.device("meta" if case.card.kind == "model" else "cpu"):
        Spec(case.card.name, ((name, value),)).build(case.card.kind, **case.known())


def _by_hand(case: Case, name: str, value: Any) -> None:
    required = {n: "x" for n, p in case.card.parameters.items() if p.default is p.empty}
    with torch.device("meta" if case.card.kind == "model" else "cpu"):
        case.card.factory(**{**case.known(), **required, name: value})


CHECKS = (
    its_docstring_says_what_it_must,
    every_parameter_has_an_annotation,
    examples_and_neutral_name_its_parameters,
    a_parameter_is_what_its_annotation_says_or_a_sentence,
)
