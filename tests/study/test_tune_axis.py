"""Values between and beyond others, on their scale and within their limits."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.study.tune.axis import Axis, around, read_axis


def test_half_way_as_the_paper_has_it():
    """Around 10^-1, among half-decades, Kornblith et al. try 10^-0.75 and 10^-1.25."""
    lr = Axis((10**-1.5, 10**-1, 10**-0.5), "log")
    assert lr.between(10**-1, 10**-0.5) == pytest.approx(10**-0.75, rel=5e-3)
    assert lr.between(10**-1.5, 10**-1) == pytest.approx(10**-1.25, rel=5e-3)
    assert lr.beyond(10**-1, 10**-0.5) == 1.0 and lr.beyond(10**-1, 10**-1.5) == 0.01


@pytest.mark.parametrize(
    ("axis", "a", "b", "between", "beyond"),
    [
        (Axis((0.0, 1.0)), 0.0, 1.0, 0.5, 2.0),
        (Axis((0.25, 4.0), "log"), 0.25, 4.0, 1.0, 64.0),
        (Axis((4, 16), "log"), 4, 16, 8, 64),
        (Axis((4, 7)), 4, 7, 6, 10),  # 5.5 is rounded to even
        (Axis((0.9, 0.999), "towards_one"), 0.9, 0.999, 0.99, 0.99999),
        (Axis((0.9, 0.99), "towards_one"), 0.99, 0.9, 0.9684, 0.0),
    ],
)
def test_by_hand(axis, a, b, between, beyond):
    assert axis.between(a, b) == axis.between(b, a) == between
    assert axis.beyond(a, b) == beyond
    assert type(axis.between(a, b)) is type(a)


def test_nothing_lies_past_a_limit_or_between_neighbours():
    assert Axis((0.6, 0.8), high=1.0).beyond(0.6, 0.8) == 1.0
    assert Axis((0.6, 0.8), high=0.9).beyond(0.6, 0.8) is None
    assert Axis((0.6, 0.8), low=0.5).beyond(0.8, 0.6) is None
    assert Axis((1, 2)).between(1, 2) is None
    assert Axis((1, 2), "log").beyond(2, 1) is None  # half of 1, rounded to even, is no image size
    assert Axis((0.1, 0.2)).between(0.1, 0.1000001) is None
    assert Axis((1.0, 1.0001), "log").beyond(1.0, 1.0001) is None  # nearer than any made-up value can be
    assert Axis((0.0, 0.9), "towards_one").beyond(0.9, 0.0) == -9.0  # nothing forbids it but a limit


def test_choices_have_no_order():
    axis = Axis(("b", "a"))
    assert not axis.ordered and axis.values == ("b", "a") and axis.size == 2
    assert axis.between("a", "b") is axis.beyond("a", "b") is None
    assert axis.nearest("a") == "a" and axis.nearest("c") == "b"
    assert Axis((True, False)).scale == Axis((8, 16), "choice").scale == "choice"


def test_a_search_begins_in_the_middle_where_the_recipe_has_no_value():
    assert Axis((0.9, 0.99, 0.999), "towards_one").nearest(None) == 0.99


def test_the_range_of_a_sampler_is_one_step_wider_within_the_limits():
    assert Axis((0.1, 1.0), "log").reach == (0.01, 10.0)
    assert Axis((0.5, 1.0), low=0.0, high=1.0).reach == (0.0, 1.0)
    assert Axis((0.5, 1.0), low=0.2).reach == (0.5, 1.5)
    assert Axis((2, 4, 8), "log", low=2, high=8).size == 7 and math.isinf(around(0.1).size)


def test_made_up_values_are_short_and_given_ones_are_kept():
    axis = Axis((0.12345678, 1.0), "log")
    assert axis.tidy(0.12345678 * (1 + 1e-12)) == 0.12345678
    assert axis.tidy(0.3333333) == 0.333 and axis.tidy(0.99990) == 1.0
    assert Axis((0.9, 0.99), "towards_one").tidy(0.987654321) == 0.9877


@settings(max_examples=50)
@given(st.floats(1e-6, 1e3), st.floats(1.05, 100), st.sampled_from(["linear", "log"]))
def test_a_step_beyond_and_back_is_where_it_began(low, ratio, scale):
    axis = Axis((low, low * ratio), scale)
    far = axis.beyond(low, low * ratio)
    middle = axis.between(low, low * ratio)
    assert far > low * ratio and (middle is None or low < middle < low * ratio)
    assert axis.between(low, far) == pytest.approx(low * ratio, rel=0.02)


def test_as_a_study_writes_it():
    assert read_axis([1, 2], floats=True).values == (1.0, 2.0) and read_axis([2, 1]).values == (1, 2)
    assert read_axis({"low": 1, "high": 9}) == Axis((1, 5, 9), low=1, high=9)
    log = Axis((0.1, 1.0), "log", high=10.0)
    assert read_axis([0.01, 0.1], like=log) == Axis((0.01, 0.1), "log", high=10.0)
    assert read_axis({"values": [1.0, 2.0], "scale": "linear"}, like=log).scale == "linear"
    assert read_axis({"low": 0.1, "high": 10.0}, like=log).values == (0.1, 1.0, 10.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "must be a list"),
        ([], "at least one"),
        ([1.0, 1.0], "no two the same"),
        ({"low": 1.0}, "low and high"),
        ({"low": "a", "high": 2}, "low must be a finite number"),
        ({"values": [1.0], "step": 2}, "no key is named 'step'"),
        ({"values": [1.0], "scale": "lg"}, "Did you mean 'log'"),
        ({"values": [0.0, 1.0], "scale": "log"}, "above 0"),
        ({"values": [0.5, 1.0], "scale": "towards_one"}, "below 1"),
        ({"values": [0.5, 2.0], "high": 1.0}, "outside of"),
        ([float("nan"), 1.0], "finite number"),
        ([[1], [2]], "numbers, texts, true or false"),
        ([1.0, float("nan"), 2.0], "finite number"),
    ],
)
def test_mistakes(given, message):
    with pytest.raises(ValueError, match=message):
        read_axis(given)
