import math

import numpy as np
import pytest
import torch

from equipoise.core import Output, Spec
from equipoise.imbalance import Temperature, fit_temperature


def nll(logits, target, temperature):
    z = np.asarray(logits, dtype=np.float64) / temperature
    z = z - z.max(1, keepdims=True)
    return float(np.mean(np.log(np.exp(z).sum(1)) - z[np.arange(len(z)), target]))


def overconfident(factor, n=800, classes=10):
    """Labels drawn from softmax(z); logits factor · z, so that T is about `factor`."""
    z = 2 * torch.randn(n, classes)
    target = torch.multinomial(z.softmax(1), 1).squeeze(1)
    return factor * z, target


@pytest.mark.parametrize("factor", [1e-3, 0.3, 1.0, 2.7, 40.0, 1e4])
def test_the_optimum_of_a_fine_grid_is_found(factor):
    logits, target = overconfident(factor)
    fitted = fit_temperature(logits, target)
    assert fitted == pytest.approx(factor, rel=0.2)
    grid = np.geomspace(fitted / 1.5, fitted * 1.5, 2001)
    losses = [nll(logits, target.numpy(), t) for t in grid]
    best = grid[int(np.argmin(losses))]
    assert fitted == pytest.approx(best, rel=1.1 * math.log(1.5) / 1000)
    assert nll(logits, target.numpy(), fitted) <= min(losses) + 1e-12
    coarse = [nll(logits, target.numpy(), t) for t in np.geomspace(fitted / 1e3, fitted * 1e3, 200)]
    assert nll(logits, target.numpy(), fitted) <= min(coarse)


def test_the_slope_vanishes_at_the_optimum():
    logits, target = overconfident(2.0)
    s = 1 / fit_temperature(logits, target)
    z = logits.double().numpy()
    p = np.exp(s * z - (s * z).max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    slope = np.mean((p * z).sum(1) - z[np.arange(len(z)), target])
    assert abs(slope) < 1e-10


def test_number_by_hand():
    # two classes, a gap of 2, right 3 times of 4: sigmoid(2/T) = 3/4, so T = 2 / log 3 = 1.82048
    logits = torch.tensor([[2.0, 0.0]]).expand(4, 2)
    assert fit_temperature(logits, torch.tensor([0, 0, 0, 1])) == pytest.approx(2 / math.log(3), rel=1e-10)


def test_scaling_and_shifting_logits_scales_the_temperature():
    logits, target = overconfident(2.0)
    logits = logits.double()
    fitted = fit_temperature(logits, target)
    assert fit_temperature(logits * 1e4, target) == pytest.approx(1e4 * fitted, rel=1e-9)
    assert fit_temperature(logits + 1e4 * torch.randn(len(logits), 1).double(), target) == pytest.approx(
        fitted, rel=1e-8
    )


def test_without_an_optimum_it_stays_finite():
    right = torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    low = fit_temperature(right, torch.tensor([0, 1]))  # all right: the colder the better
    assert 0 < low < 0.05 and nll(right, [0, 1], low) < 1e-9
    high = fit_temperature(right, torch.tensor([1, 0]))  # all wrong: the hotter the better
    assert 1e3 < high < 1e6
    assert nll(right, [1, 0], high) == pytest.approx(math.log(2), abs=1e-3)
    assert fit_temperature(torch.zeros(3, 2), torch.tensor([0, 1, 1])) == 1.0
    assert math.isfinite(fit_temperature(right * 1e4, torch.tensor([0, 1])))


def test_one_sample_and_half_precision():
    assert fit_temperature(torch.tensor([[1.0, 0.0]]), torch.tensor([0])) > 0
    logits, target = overconfident(2.0)
    fitted = Temperature().fit(Output(logits.bfloat16()), target)
    assert fitted(Output(logits.bfloat16())).dtype == torch.float32
    assert fitted.temperature_ == fit_temperature(logits.bfloat16().float(), target)


def test_predictions_stay_and_the_likelihood_gains():
    logits, target = overconfident(3.0)
    fitted = Temperature().fit(Output(logits), target)
    scaled = fitted(Output(logits))
    assert torch.equal(scaled.argmax(1), logits.argmax(1))
    assert nll(scaled, target.numpy(), 1.0) < nll(logits, target.numpy(), 1.0) - 0.1


def test_text_and_errors():
    assert repr(Spec.parse("temperature").build("posthoc")) == "Temperature()"
    with pytest.raises(ValueError, match="call fit"):
        Temperature()(Output(torch.zeros(1, 2)))
    with pytest.raises(ValueError, match="there are none"):
        fit_temperature(torch.zeros(0, 2), torch.zeros(0, dtype=torch.long))
    with pytest.raises(ValueError, match="finite"):
        fit_temperature(torch.tensor([[1.0, math.nan]]), torch.tensor([0]))
    with pytest.raises(ValueError, match="label 2"):
        fit_temperature(torch.zeros(1, 2), torch.tensor([2]))


def test_a_weight_of_two_is_the_sample_twice():
    generator = torch.Generator().manual_seed(0)
    logits, target = 3 * torch.randn(40, 3, generator=generator), torch.randint(3, (40,), generator=generator)
    twice = torch.cat([logits, logits[:10]]), torch.cat([target, target[:10]])
    weight = torch.ones(40)
    weight[:10] = 2
    assert fit_temperature(logits, target, weight) == pytest.approx(fit_temperature(*twice), rel=1e-9)
