import math
from inspect import signature

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from equipoise.analysis import bootstrap_interval
from equipoise.analysis.statistics import bootstrap


@pytest.mark.parametrize("name", ["normal", "skewed", "binary"])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_against_scipy(name, confidence):
    rng = np.random.default_rng(0)
    values = {
        "normal": rng.normal(3, 2, 30),
        "skewed": rng.exponential(1, 40),
        "binary": (rng.random(50) < 0.8).astype(float),  # many means are equal to the mean
    }[name]
    source = "rng" if "rng" in signature(stats.bootstrap).parameters else "random_state"  # before SciPy 1.15
    options = {"confidence_level": confidence, "n_resamples": 20_000, "method": "BCa", source: np.random.default_rng(1)}
    theirs = stats.bootstrap((values,), np.mean, **options).confidence_interval
    spread = values.std() / math.sqrt(len(values))
    ours = bootstrap_interval(values, confidence, resamples=20_000)
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.06 * spread)  # of two random sources


@given(st.lists(st.integers(-20, 20), min_size=2, max_size=12), st.floats(0.1, 100), st.floats(-100, 100))
@example([0, 0, 5], 1.0, 0.0)  # rounding took the lower end below the least value
@settings(max_examples=30)
def test_moves_and_scales_with_the_values(whole, scale, shift):
    x = np.array(whole, float)
    low, high = bootstrap_interval(x, resamples=200)
    moved = bootstrap_interval(scale * x + shift, resamples=200)
    assert moved == pytest.approx((scale * low + shift, scale * high + shift), abs=1e-9 * (1 + abs(shift) + scale * 20))
    assert x.min() <= low <= high <= x.max()


def test_it_leans_where_the_values_do():
    low, high = bootstrap_interval([0.0] * 9 + [10.0])
    assert high - 1 > 1 - low  # the mean is 1
    mirrored = bootstrap_interval([0.0] * 9 + [-10.0])
    assert mirrored[0] < mirrored[1] <= 0


def test_it_holds_the_mean():
    """Of 300 intervals of 90 %, each from 30 normal values; three standard errors of that share are 0.05."""
    rng = np.random.default_rng(0)
    intervals = [bootstrap_interval(rng.normal(1, 1, 30), 0.9, resamples=400, seed=i) for i in range(300)]
    assert 0.83 * 300 <= sum(low <= 1 <= high for low, high in intervals) <= 0.95 * 300


def test_seed_and_parts(monkeypatch):
    x = np.random.default_rng(0).normal(size=20)
    interval = bootstrap_interval(x)
    assert bootstrap_interval(x, seed=0) == interval == bootstrap_interval(torch.tensor(x))
    assert bootstrap_interval(x, seed=1) != interval
    monkeypatch.setattr(bootstrap, "DRAWS", 7 * len(x))
    assert bootstrap_interval(x) == pytest.approx(interval, abs=1e-12)  # the same stream, in parts
    assert len(bootstrap._means(x, 25, 0)) == 25


def test_few_and_constant_values():
    assert np.isnan(bootstrap_interval([])).all()
    assert np.isnan(bootstrap_interval([0.7])).all()
    assert bootstrap_interval([0.1] * 3) == (0.1, 0.1)
    assert bootstrap_interval([0.0, 1.0]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([0.1, math.nan], {}, "row of finite numbers"),
        ([[0.1]], {}, "row of finite numbers"),
        ([0.1, 0.2], {"confidence": 0.0}, "confidence must lie between 0 and 1"),
        ([0.1, 0.2], {"resamples": 0}, "resamples must be a whole number"),
    ],
)
def test_errors(values, options, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_interval(values, **options)
