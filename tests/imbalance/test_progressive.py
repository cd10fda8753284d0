from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.imbalance import ProgressiveSampler


@settings(max_examples=80, deadline=None)
@given(labels=st.lists(st.integers(0, 5), min_size=1, max_size=80), progress=st.floats(0, 1))
def test_shares_go_from_uniform_to_balanced(labels, progress):
    sampler = ProgressiveSampler(labels)
    sampler.set_epoch(0, progress)
    share, sizes = Counter(labels[i] for i in sampler), Counter(labels)
    for label, n in sizes.items():
        expected = (1 - progress) * n + progress * len(labels) / len(sizes)
        assert abs(share[label] - expected) < 1 + 1e-5


@given(labels=st.lists(st.integers(0, 5), min_size=1, max_size=80), seed=st.integers(0, 10**6))
@settings(max_examples=80, deadline=None)
def test_it_starts_by_visiting_every_sample_once(labels, seed):
    assert sorted(ProgressiveSampler(labels, seed=seed)) == list(range(len(labels)))


@pytest.mark.parametrize(("progress", "rare"), [(0.0, 1), (0.5, 3), (1.0, 5)])
def test_number_by_hand(progress, rare):
    # 9 and 1 samples: 1, half-way (1 + 5)/2 = 3, at last 5 of 10 places
    for seed in range(20):
        sampler = ProgressiveSampler([0] * 9 + [1], seed=seed)
        sampler.set_epoch(0, progress)
        assert list(sampler).count(9) == rare
