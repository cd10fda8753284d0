import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise import analysis
from equipoise.analysis.metrics import reliability


def sample(seed, n=200, c=4):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(c, 0.5), n), rng.integers(0, c, n)


def test_curve_against_loops():
    probs, labels = sample(0)
    curve = analysis.reliability_curve(probs, labels, bins=10)
    for b in range(10):
        inside = [(max(r), r.argmax() == y) for r, y in zip(probs, labels, strict=True) if b < 10 * max(r) <= b + 1]
        assert curve.samples[b] == len(inside)
        expected = np.mean(inside, axis=0) if inside else (math.nan, math.nan)
        np.testing.assert_allclose((curve.confidence[b], curve.accuracy[b]), expected, rtol=1e-12)
    assert np.isnan(curve.confidence[:2]).all()  # of four classes the largest is above 0.25


@given(st.integers(0, 10_000), st.integers(1, 20))
@settings(max_examples=30)
def test_the_curve_holds_the_error(seed, bins):
    probs, labels = sample(seed, n=30)
    curve = analysis.reliability_curve(probs, labels, bins)
    gaps = curve.samples * np.nan_to_num(np.abs(curve.accuracy - curve.confidence))
    assert curve.samples.sum() == 30
    assert gaps.sum() / 30 == pytest.approx(analysis.expected_calibration_error(probs, labels, bins))


def slow_interval(probs, labels, bins, resamples, rng):
    """The same interval with loops and another random source."""
    sure, right = probs.max(axis=1), probs.argmax(axis=1) == labels
    place = np.ceil(sure * bins).astype(int) - 1

    def error(index, right):
        return sum(abs((right - sure[index])[place[index] == b].sum()) for b in range(bins)) / len(index)

    n = np.arange(len(labels))
    drawn = [error(i, right[i]) for i in rng.integers(0, len(n), (resamples, len(n)))]
    calibrated = [error(n, rng.random(len(n)) < sure) for _ in range(resamples)]
    found, (low, high) = error(n, right), np.quantile(drawn, [0.025, 0.975])
    return (max(0, 2 * found - high) if found > np.quantile(calibrated, 0.975) else 0.0), 2 * found - low


@pytest.mark.parametrize("seed", [0, 3])
def test_interval_against_loops(seed):
    probs, labels = sample(seed)
    slow = slow_interval(probs, labels, 15, 1000, np.random.default_rng(1))
    assert analysis.calibration_error_interval(probs, labels, resamples=4000) == pytest.approx(slow, abs=0.01)


def test_a_calibrated_network_may_have_no_error():
    rng = np.random.default_rng(4)  # unlucky: without the second thought low would be 0.02
    sure = rng.uniform(0.55, 1, 400)
    labels = (rng.random(400) > sure).astype(int)
    probs = np.stack([sure, 1 - sure], axis=1)
    low, high = analysis.calibration_error_interval(probs, labels)
    assert analysis.expected_calibration_error(probs, labels) > 0.06  # noise alone
    assert low == 0 < high < 0.1
    low, _ = analysis.calibration_error_interval(probs, 1 - labels)
    assert low > 0.4


def test_the_interval_holds_the_true_error():
    """Overconfident by 0.1 everywhere: of 40 intervals of 95 %, at least 33 hold it (expected about 37)."""
    rng = np.random.default_rng(0)
    held = 0
    for seed in range(40):
        sure = rng.uniform(0.6, 1, 500)
        labels = (rng.random(500) > sure - 0.1).astype(int)
        low, high = analysis.calibration_error_interval(np.stack([sure, 1 - sure], 1), labels, resamples=200, seed=seed)
        held += low <= 0.1 <= high
    assert held >= 33


def test_seed_and_parts(monkeypatch):
    probs, labels = sample(1)
    interval = analysis.calibration_error_interval(probs, labels)
    assert analysis.calibration_error_interval(probs, labels, seed=0) == interval
    assert analysis.calibration_error_interval(probs, labels, seed=1) != interval
    monkeypatch.setattr(reliability, "DRAWS", 7 * len(labels))
    assert analysis.calibration_error_interval(probs, labels) == pytest.approx(interval, abs=0.02)
    drawn, calibrated = reliability._resampled(*map(torch.tensor, ([0, 1], [0.1, 0.2], [0.5, 0.5])), 2, 25, 0)
    assert len(drawn) == len(calibrated) == 25


def test_a_wider_confidence_gives_a_wider_interval():
    probs, labels = sample(2)
    wide, narrow = (analysis.calibration_error_interval(probs, labels, confidence=c) for c in (0.99, 0.8))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_one_sample_tells_nothing():
    assert analysis.calibration_error_interval([[0.7, 0.3]], [0]) == (0.0, 1.0)


def test_arrays_are_answered_in_their_kind():
    probs, labels = sample(0)
    low, _ = analysis.calibration_error_interval(torch.tensor(probs), torch.tensor(labels), resamples=10)
    curve = analysis.reliability_curve(torch.tensor(probs), torch.tensor(labels))
    assert isinstance(low, torch.Tensor) and isinstance(curve.accuracy, torch.Tensor)
    assert type(analysis.calibration_error_interval(probs, labels, resamples=10)[0]) is float
    assert isinstance(analysis.reliability_curve(probs, labels).samples, np.ndarray)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 1.0}, "confidence must lie between 0 and 1"),
        ({"resamples": 0}, "resamples must be a whole number, at least 1"),
        ({"bins": 0}, "bins must be at least 1"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        analysis.calibration_error_interval([[0.5, 0.5]] * 2, [0, 1], **options)
