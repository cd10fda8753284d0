"""Values held against annotations."""

import math
from typing import Any, Literal

import pytest

from equipoise.core.annotations import fitted
from equipoise.core.words import counted, shown


@pytest.mark.parametrize(
    ("value", "annotation", "expected"),
    [
        (True, bool, True),
        (2, int, 2),
        (2, float, 2.0),
        (2, float | None, 2.0),
        (None, float | None, None),
        (2, int | float, 2),
        ("x", str, "x"),
        ("a", Literal["a", "b"], "a"),
        ([0, 1], tuple[float, ...], (0.0, 1.0)),
        ((1, 2), int | tuple[int, int] | None, (1, 2)),
        ({1}, Any, {1}),
        (3, list[int], 3),  # an annotation we do not know takes anything
    ],
)
def test_a_value_that_fits_becomes_what_is_meant(value, annotation, expected):
    found = fitted("x", value, annotation)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "annotation", "words"),
    [
        (1, bool, "true or false"),
        ("yes", bool, "true or false"),
        (True, int, "a whole number"),
        (2.0, int, "a whole number"),
        (2**63, int, "too large"),
        (True, float, "a finite number"),
        ("2", float, "a finite number"),
        (math.nan, float, "a finite number"),
        (math.inf, float | None, "a finite number or None"),
        (10**400, float, "too large"),
        (1e39, float, "too large"),
        (3, str, "printable text"),
        ("a\0", str, "printable text"),
        ("\x1b[31m", str, "printable text"),
        (0, Literal[False], "one of False"),
        (1, tuple[float, ...], "a list of finite numbers"),
        ((1, "x"), tuple[float, ...], "a list of finite numbers"),
        ((1, 2, 3), tuple[int, int], "a list of 2 whole numbers"),
        (0, None, "None"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_in_words(value, annotation, words):
    with pytest.raises(ValueError, match=f"gamma must be .*{words}"):
        fitted("gamma", value, annotation)


def test_no_message_repeats_more_than_a_line():
    for value in ("x" * 10**6, 10**4000, int("f" * 5000, 16), [[0] * 1000] * 1000):
        assert len(shown(value)) < 100


def test_one_is_singular():
    assert [counted(n, "run") for n in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]
