import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from equipoise import imbalance
from equipoise.analysis import fit_temperature, negative_log_likelihood


def sample(seed, n=300, c=5, true=2.5):
    """Logits whose labels are drawn at temperature `true`."""
    torch.manual_seed(seed)
    logits = 4 * torch.randn(n, c, dtype=torch.float64)
    return logits, torch.multinomial((logits / true).softmax(dim=1), 1).squeeze(1)


def slow_nll(log_t, logits, labels):
    total = 0.0
    for row, y in zip(logits.tolist(), labels.tolist(), strict=True):
        scaled = [z / math.exp(log_t) for z in row]
        top = max(scaled)
        total += top + math.log(sum(math.exp(z - top) for z in scaled)) - scaled[y]
    return total / len(labels)


@pytest.mark.parametrize("true", [0.4, 1.0, 6.0])
def test_against_another_optimizer(true):
    logits, labels = sample(0, n=80, true=true)
    slow = minimize_scalar(slow_nll, args=(logits, labels), bounds=(-6, 6), method="bounded", options={"xatol": 1e-10})
    assert math.log(fit_temperature(logits, labels)) == pytest.approx(slow.x, abs=1e-5)


def test_by_hand():
    # logits (2, 0), right 3 times of 4: sigmoid(2 / T) must be 0.75
    assert fit_temperature([[2.0, 0.0]] * 4, [0, 0, 0, 1]) == pytest.approx(2 / math.log(3), rel=1e-12)


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_no_neighbour_is_better(seed):
    logits, labels = sample(seed, n=40, true=1 + seed % 5)
    best = float(fit_temperature(logits, labels))
    nll = float(negative_log_likelihood(logits / best, labels))
    for factor in (0.9, 0.999, 1.001, 1.1):
        assert nll <= float(negative_log_likelihood(logits / (factor * best), labels)) + 1e-12


@given(st.integers(0, 10_000), st.floats(0.01, 100))
@settings(max_examples=25)
def test_scaled_logits_have_a_scaled_temperature(seed, scale):
    logits, labels = sample(seed, n=40)
    assert float(fit_temperature(scale * logits, labels)) == pytest.approx(
        scale * float(fit_temperature(logits, labels))
    )


CASES = {
    "drawn": sample(1),
    "float32": (sample(2)[0].float(), sample(2)[1]),
    "all right": (torch.tensor([[3.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1])),
    "right with ties": (torch.tensor([[3.0, 0.0], [1.0, 1.0]]), torch.tensor([0, 1])),
    "worse than chance": (torch.tensor([[3.0, 0.0], [0.0, 1.0]]), torch.tensor([1, 0])),
    "constant": (torch.ones(3, 4), torch.tensor([0, 1, 2])),
    "one sample, right": (torch.tensor([[1.0, 0.0]]), torch.tensor([0])),
    "huge": (1e6 * sample(3)[0], sample(3)[1]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_posthoc_method_finds_the_same(case):
    logits, labels = CASES[case]
    posthoc = imbalance.fit_temperature(logits, labels)
    assert float(fit_temperature(logits, labels)) == pytest.approx(posthoc, rel=1e-9)


def test_without_an_optimum():
    low = fit_temperature(*CASES["all right"])
    assert 1e-4 * 3 <= low < 0.02
    assert float(negative_log_likelihood(CASES["all right"][0] / low, CASES["all right"][1])) < 1e-20
    assert fit_temperature(*CASES["worse than chance"]) == pytest.approx(1e4 * 3, rel=1e-3)
    assert fit_temperature(*CASES["constant"]) == 1.0


def test_parts_add_up(monkeypatch):
    logits, labels = sample(4)
    whole = float(fit_temperature(logits, labels))
    monkeypatch.setattr("equipoise.imbalance.posthoc.temperature.CHUNK", 64)
    assert float(fit_temperature(logits, labels)) == pytest.approx(whole, rel=1e-11)


def test_arrays_are_answered_in_their_kind():
    logits, labels = sample(5)
    tensor, number = fit_temperature(logits, labels), fit_temperature(logits.numpy(), labels.numpy())
    assert isinstance(tensor, torch.Tensor) and type(number) is float
    assert float(tensor) == number


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        ([[0.0, -math.inf], [0.0, 1.0]], [0, 1], "logits must be finite to fit a temperature"),
        ([[0.0, math.nan]], [0], "not finite in 1 of 1 rows"),
        ([[0.0, 1.0]], [2], "labels has class 2"),
        (np.empty((0, 3)), np.empty(0, int), r"shape \(N, C\)"),
    ],
)
def test_errors(logits, labels, message):
    with pytest.raises(ValueError, match=message):
        fit_temperature(logits, labels)
