"""Every parameter of everything that is registered refuses what it cannot be, with a sentence, when it is made."""

import inspect
import math

import pytest
import torch

from equipoise.core import EquipoiseError, Spec, cards
from equipoise.core.annotations import annotation_of

FACTS = {
    "class_counts": torch.tensor([3, 2]),
    "num_classes": 2,
    "labels": torch.tensor([0, 0, 0, 1, 1]),
    "in_features": 4,
    "num_features": 4,
    "head_weight": torch.ones(2, 4),
    "epochs": 5,
}
ENTRIES = [(entry, name) for entry in cards() for name in entry.parameters]
TYPES = {"bool": bool, "int": int, "float": int | float, "str": str, "None": type(None), "tuple": tuple}
STRANGE = [
    *(True, False, None, "x", "", "nul\0", (), (1,), (0.5, "x"), {}, {1}, b"x", 1j),
    *(-1, 0, 1, 3, 10**9, 10**30, 10**400, -(10**400), 0.5, -0.5, 1e300, -1e300, 1e-300, math.nan, math.inf, -math.inf),
]


def wanted(entry, name):
    """The types that the annotation names."""
    annotation = str(annotation_of(entry.parameters[name]))
    return tuple(kind for word, kind in TYPES.items() if word in annotation)


def build(entry, name, value, make):
    facts = {fact: FACTS[fact] for fact in entry.facts if fact in FACTS}
    with torch.device("meta" if entry.kind == "model" else "cpu"):
        return make(entry, name, value, facts)


def by_spec(entry, name, value, facts):
    return Spec(entry.name, ((name, value),)).build(entry.kind, **facts)


def by_hand(entry, name, value, facts):
    required = {n: "x" for n, p in entry.parameters.items() if p.default is inspect.Parameter.empty}
    return entry.factory(**{**facts, **required, name: value})


@pytest.mark.parametrize(("entry", "name"), ENTRIES, ids=[f"{e.kind}.{e.name}.{n}" for e, n in ENTRIES])
def test_a_parameter_is_what_its_annotation_says_or_a_sentence(entry, name):
    types = wanted(entry, name)
    assert types, f"{entry.name}.{name} has an annotation that this test does not know"
    for value in STRANGE:
        fits = isinstance(value, types) and not (isinstance(value, bool) and bool not in types)
        for make in (by_spec, by_hand):
            try:
                build(entry, name, value, make)
            except ValueError as error:
                assert str(error) and (make is by_hand or isinstance(error, EquipoiseError))
                assert name in str(error) or entry.kind == "task", f"{value!r}: {error}"
                continue
            assert fits, f"{make.__name__} took {value!r}"
            assert not isinstance(value, float | int) or math.isfinite(float(value)), f"{make.__name__} took {value!r}"


@pytest.mark.parametrize("entry", cards(), ids=lambda e: f"{e.kind}.{e.name}")
def test_every_parameter_has_an_annotation(entry):
    assert all(p.annotation is not p.empty for p in entry.parameters.values())
