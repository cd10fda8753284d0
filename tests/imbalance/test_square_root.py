from collections import Counter
from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.imbalance import SquareRootSampler


@settings(max_examples=80, deadline=None)
@given(labels=st.lists(st.integers(0, 5), min_size=1, max_size=80), seed=st.integers(0, 10**6))
def test_shares_are_as_the_square_roots_to_within_one(labels, seed):
    sizes = Counter(labels)
    total = sum(sqrt(n) for n in sizes.values())
    share = Counter(labels[i] for i in SquareRootSampler(labels, seed=seed))
    assert sum(share.values()) == len(labels)
    for label, n in sizes.items():
        assert abs(share[label] - len(labels) * sqrt(n) / total) < 1 + 1e-5


def test_number_by_hand():
    # 36 and 9 samples are as 6 to 3 places, of 45: 30 and 15
    share = Counter(i < 36 for i in SquareRootSampler([0] * 36 + [1] * 9))
    assert (share[True], share[False]) == (30, 15)


def test_shares_are_right_on_average():
    # 16 and 4 samples: 20 · 4/6 = 13.33 places, rounded down twice of three times
    first = [sum(i < 16 for i in SquareRootSampler([0] * 16 + [1] * 4, seed=s)) for s in range(600)]
    assert set(first) == {13, 14}
    assert sum(first) / 600 == pytest.approx(13.333, abs=0.08)
