"""The score against a dial."""

import math
from itertools import pairwise

import pytest

from equipoise.report.collected import Estimate
from equipoise.report.figures import Trial, sensitivity_plot
from equipoise.report.figures.sensitivity import _places


def trial(value, mean, method="focal", dial="loss.gamma", low=math.nan, high=math.nan):
    return Trial(method, dial, value, Estimate(3, mean, low, high))


def marks(group):
    return [(float(c.get("cx")), float(c.get("cy")), float(c.get("r"))) for c in group.iter("circle")]


def test_marks_stand_in_order_and_the_best_is_larger(results, groups):
    trials = [trial(2.0, 0.9), trial(0.5, 0.7), trial(1.0, 0.8), trial(1.0, 0.1, dial="another")]
    group = groups(sensitivity_plot(results, "loss.gamma", trials))["3"]
    found = marks(group)
    assert [x for x, _, _ in found] == sorted(x for x, _, _ in found)
    assert [y for _, y, _ in found] == sorted((y for _, y, _ in found), reverse=True)
    assert [r for _, _, r in found] == [3, 3, 5]


@pytest.mark.parametrize(
    ("values", "distances"),
    [
        ([0.0, 1.0, 3.0], [1, 2]),
        ([0.001, 0.01, 1.0], [1, 2]),  # by the logarithm
        ([0.9, 0.99, 0.9999], [1, 2]),  # by the distance to 1
        (["batch", "group", None], [1, 1]),
        ([1, "auto", 4], [1, 1]),
    ],
)
def test_values_lie_as_they_are_thought_of(values, distances):
    at = list(_places(values).values())
    gaps = [b - a for a, b in pairwise(at)]
    assert [gap / gaps[0] for gap in gaps] == pytest.approx([d / distances[0] for d in distances])
    assert min(at) >= 38 and max(at) <= 364


def test_one_value_and_unknown_methods(results, groups):
    plot = sensitivity_plot(results, "loss.gamma", [trial(1.0, 0.5), trial(1.0, 0.6, method="stranger")])
    assert set(groups(plot)) == {"3", "4"}


def test_scores_that_are_not_known(results):
    assert sensitivity_plot(results, "loss.gamma", [trial(1.0, math.nan)]) == ""
    assert sensitivity_plot(results, "loss.gamma", []) == ""
