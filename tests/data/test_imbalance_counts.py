"""Counts of imbalanced sets against the published totals, and what is refused."""

import numpy as np
import pytest

from equipoise.core import EquipoiseError
from equipoise.data import draw, long_tailed_counts, step_counts

CIFAR10 = {10: 20431, 20: 17023, 50: 13996, 100: 12406, 200: 11203}
CIFAR100 = {10: 19573, 20: 15907, 50: 12608, 100: 10847, 200: 9502}
TOTALS = [(10, 5000, *item) for item in CIFAR10.items()] + [(100, 500, *item) for item in CIFAR100.items()]


@pytest.mark.parametrize(("num_classes", "n_max", "ratio", "total"), TOTALS)
def test_long_tailed_totals_are_the_published_ones(num_classes, n_max, ratio, total):
    counts = long_tailed_counts(num_classes, n_max, ratio)
    assert sum(counts) == total
    assert counts[0] == n_max and counts[-1] == int(n_max / ratio)
    assert counts == sorted(counts, reverse=True)
    assert all(type(n) is int for n in counts)


def test_long_tailed_by_hand():
    # 80 · 16^(-i/4): 80, 40, 20, 10, 5
    assert long_tailed_counts(5, 80, 16) == [80, 40, 20, 10, 5]
    # 7 · 4^(-1/2) = 3.5 and 7/4 = 1.75 are truncated
    assert long_tailed_counts(3, 7, 4) == [7, 3, 1]


def test_step_by_hand():
    assert step_counts(4, 5000, 100) == [5000, 5000, 50, 50]
    assert step_counts(5, 7, 2) == [7, 7, 7, 3, 3], "no class is lost, and 3.5 is truncated"


@pytest.mark.parametrize("counts", [long_tailed_counts, step_counts])
def test_ratio_one_and_a_single_class(counts):
    assert counts(7, 30, 1) == [30] * 7
    assert counts(1, 30, 100) == [30]


@pytest.mark.parametrize("counts", [long_tailed_counts, step_counts])
@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((10, 100, 0.5), "ratio"),
        ((10, 100, float("nan")), "ratio"),
        ((10, 100, float("inf")), "ratio"),
        ((0, 100, 10), "num_classes"),
        ((2.5, 100, 10), "num_classes"),
        ((10, 0, 10), "n_max"),
        ((10, 10.5, 10), "n_max"),
    ],
)
def test_bad_arguments(counts, arguments, word):
    with pytest.raises(ValueError, match=word):
        counts(*arguments)


POOLS = [np.array([7, 1, 4]), np.array([0, 9])]


def test_draw_takes_the_first_of_each_class_in_ascending_order():
    assert draw(POOLS, [2, 1], ["a", "b"]).tolist() == [0, 1, 7]


def test_draw_refuses_an_empty_class_by_name_with_the_remedy():
    with pytest.raises(EquipoiseError, match=r"'b'.*no image.*lower the ratio or raise n_max"):
        draw(POOLS, [2, 0], ["a", "b"])


def test_draw_refuses_more_than_there_is():
    with pytest.raises(EquipoiseError, match=r"'b' has 2 images, 3 were asked for"):
        draw(POOLS, [2, 3], ["a", "b"])
