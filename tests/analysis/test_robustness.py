import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from equipoise import analysis
from equipoise.data import CORRUPTIONS

RATES = st.lists(st.floats(0.01, 1), min_size=5, max_size=5)
TWO = {"fog": [0.1, 0.2, 0.3], "snow": [0.2, 0.2, 0.2]}


def slow_mce(errors, baseline):
    total = 0.0
    for name in errors:
        ours, theirs = 0.0, 0.0
        for a, b in zip(errors[name], baseline[name], strict=True):
            ours, theirs = ours + a, theirs + b
        total += ours / theirs
    return 100 * total / len(errors)


def test_alexnet_is_at_100():
    assert len(analysis.ALEXNET_ERRORS) == 15
    own = {
        name: [rate - 0.1, rate - 0.05, rate, rate + 0.05, rate + 0.1] for name, rate in analysis.ALEXNET_ERRORS.items()
    }
    own["impulse_noise"] = [0.92264] * 5
    assert analysis.mean_corruption_error(own) == pytest.approx(100, rel=1e-12)


def test_alexnet_s_mean_error():
    """11.834896 / 15, added by hand; and a network that is wrong half of the time, compared with each."""
    assert np.mean(list(analysis.ALEXNET_ERRORS.values())) == pytest.approx(11.834896 / 15, abs=1e-9)
    half = dict.fromkeys(analysis.ALEXNET_ERRORS, [0.5] * 5)
    by_hand = 100 / 15 * sum(0.5 / rate for rate in analysis.ALEXNET_ERRORS.values())
    assert analysis.mean_corruption_error(half) == pytest.approx(by_hand, rel=1e-12)


def test_the_corruptions_have_the_names_of_the_published_errors():
    assert set(analysis.ALEXNET_ERRORS) == set(CORRUPTIONS)


@given(st.dictionaries(st.sampled_from(sorted(analysis.ALEXNET_ERRORS)), st.tuples(RATES, RATES), min_size=1))
def test_like_the_loop(table):
    errors, baseline = ({name: pair[i] for name, pair in table.items()} for i in (0, 1))
    assert analysis.mean_corruption_error(errors, baseline) == pytest.approx(slow_mce(errors, baseline), rel=1e-12)
    assert analysis.mean_corruption_error(errors, errors) == pytest.approx(100)
    halved = {name: [rate / 2 for rate in rates] for name, rates in errors.items()}
    whole = analysis.mean_corruption_error(errors, baseline)
    assert analysis.mean_corruption_error(halved, baseline) == pytest.approx(whole / 2)


def test_by_hand():
    baseline = {"fog": [0.2, 0.4, 0.6], "snow": [0.6, 0.1, 0.1]}
    assert analysis.mean_corruption_error(TWO, baseline) == pytest.approx(100 * (0.6 / 1.2 + 0.6 / 0.8) / 2)
    # above clean: 0.6 - 3 * 0.1 = 0.3 and 0.3; the baseline's 1.2 - 0.6 = 0.6 and 0.8 - 0.6 = 0.2
    relative = analysis.relative_mean_corruption_error(TWO, 0.1, baseline, 0.2)
    assert relative == pytest.approx(100 * (0.3 / 0.6 + 0.3 / 0.2) / 2)


def test_numpy_and_tensors():
    arrays = {name: np.array(rates) for name, rates in TWO.items()}
    tensors = {name: torch.tensor(rates, dtype=torch.float64) for name, rates in TWO.items()}
    assert analysis.mean_corruption_error(arrays, tensors) == pytest.approx(100)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: analysis.mean_corruption_error(TWO), "errors lacks ..brightness"),
        (lambda: analysis.mean_corruption_error({}, {}), "same corruptions"),
        (lambda: analysis.mean_corruption_error(TWO, "resnet"), "must be one of 'alexnet'"),
        (lambda: analysis.mean_corruption_error(TWO, {**TWO, "frost": [0.1] * 3}), r"lacks \['frost'\]"),
        (lambda: analysis.mean_corruption_error(TWO, {**TWO, "fog": [0.0] * 3}), "no error on fog"),
        (lambda: analysis.mean_corruption_error(TWO, {**TWO, "fog": [0.1] * 5}), "3 severities in errors and 5"),
        (lambda: analysis.mean_corruption_error({**TWO, "fog": [10.0, 20.0, 30.0]}, TWO), "divide percent by 100"),
        (lambda: analysis.mean_corruption_error({**TWO, "fog": [math.nan] * 3}, TWO), "between 0 and 1"),
        (lambda: analysis.mean_corruption_error({**TWO, "fog": []}, TWO), "between 0 and 1"),
        (lambda: analysis.relative_mean_corruption_error(TWO, 0.1, TWO, 0.3), "does not harm the baseline"),
        (lambda: analysis.relative_mean_corruption_error(TWO, 10.0, TWO, 0.1), "clean must lie between 0 and 1"),
        (lambda: analysis.subset_logits([[1.0, 2.0]], []), "at least one"),
        (lambda: analysis.subset_logits([[1.0, 2.0]], [2]), "from 0 to 1"),
        (lambda: analysis.subset_logits([[1.0, 2.0]], [-1]), "from 0 to 1"),
        (lambda: analysis.subset_logits([[1, 2]], [0]), "floating"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_subset_of_classes():
    logits = np.random.default_rng(0).normal(size=(50, 10))
    few = [7, 2, 5]
    kept = analysis.subset_logits(logits, few)
    np.testing.assert_array_equal(kept.argmax(1), np.array(sorted(few))[logits[:, sorted(few)].argmax(1)])
    p = np.exp(analysis.log_softmax(kept))
    inside = np.exp(logits[:, few])
    np.testing.assert_allclose(p[:, few], inside / inside.sum(1, keepdims=True), rtol=1e-12)
    assert (p[:, [c for c in range(10) if c not in few]] == 0).all()
    tensor = analysis.subset_logits(torch.from_numpy(logits).float(), few)
    assert isinstance(tensor, torch.Tensor) and tensor.dtype == torch.float32
