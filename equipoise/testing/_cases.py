"""A method at one example of its parameters, and the running of checks on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..core import Card, Spec, card

COUNTS = (500, 120, 33, 7, 1)  # images of each class
C = len(COUNTS)
LABELS = (0, 0, 0, 1, 1, 2, 3, 4)
FEATURES = 6


@dataclass(frozen=True)
class Case:
    """A registered method with values for its parameters."""

    card: Card
    spec: Spec

    def known(self, counts: Any = COUNTS, labels: Any = LABELS) -> dict[str, Any]:
        """What a task or a network would tell it, of what it asks for."""
        everything = {
            "class_counts": counts if isinstance(counts, Tensor) else list(counts),
            "labels": torch.tensor(labels),
            "num_classes": C,
            "num_features": FEATURES,
            "in_features": FEATURES,
            "feature_dim": FEATURES,
            "head_weight": torch.ones(C, FEATURES),
            "epochs": 5,
        }
        return {name: everything[name] for name in self.card.facts if name in everything}

    def build(self, counts: Any = COUNTS, labels: Any = LABELS, **more: Any) -> Any:
        """The method, as one's own loop would make it."""
        return self.card.factory(**{**self.known(counts, labels), **dict(self.spec.params), **more})

    def __str__(self) -> str:
        return f"{self.card.kind} {self.spec}"


def cases_of(method: Card | str, kind: str) -> list[Case]:
    """One for each example that the method was registered with."""
    entry = card(method, kind) if isinstance(method, str) else method
    require(entry.kind == kind, f"{entry.name} is registered as a {entry.kind}, not as a {kind}")
    return [Case(entry, Spec(entry.name, tuple(example.items()))) for example in entry.examples]


Check = Callable[[Case], None]


def run(checks: Iterable[Check], cases: Iterable[Case]) -> None:
    """All checks on all cases, from the same random state each; an error says which it was."""
    for case in cases:
        for check in checks:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                try:
                    check(case)
                except Exception as error:  # of the check, or of the method itself
                    question = check.__name__.replace("_", " ")
                    what = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
                    raise AssertionError(f"{case}, {question}: {what}{error}") from error


def require(condition: Any, otherwise: str) -> None:
    """An `assert` with a sentence, also where Python was told to skip asserts."""
    if not condition:
        raise AssertionError(otherwise)


def require_error(message: str, call: Callable[..., Any], *arguments: Any) -> None:
    """`call` raises a ValueError whose text matches `message`."""
    try:
        call(*arguments)
    except ValueError as error:
        require(re.search(message, str(error)), f"expected an error that says {message!r}, not {str(error)!r}")
    else:
        raise AssertionError(f"expected an error that says {message!r}, but there was none")


def same(actual: Any, expected: Any, what: str, **tolerances: Any) -> None:
    """Tensors, or sequences of them, are alike to rounding."""
    torch.testing.assert_close(actual, expected, **tolerances, msg=lambda text: f"{what} differs. {text}")
