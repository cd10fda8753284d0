from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.imbalance import UniformSampler


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 200), seed=st.integers(0, 10**6))
def test_every_sample_comes_once(n, seed):
    assert sorted(UniformSampler([0] * n, seed=seed)) == list(range(n))


def test_orders_are_equally_likely():
    seen = Counter(tuple(UniformSampler([0, 1, 2], seed=s)) for s in range(1200))
    assert len(seen) == 6 and all(150 < n < 250 for n in seen.values())  # 200 each, std 13
