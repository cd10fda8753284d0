import numpy as np
import pytest
import torch

from equipoise.core import Output, Spec
from equipoise.imbalance import BiasWeighting, bias_weights


def reference(feature_map, alpha, beta, statistic, inverse, legacy=False):
    """z of each sample, one at a time."""
    rows = [np.asarray(row, dtype=np.float64).ravel() for row in feature_map]

    def z(values):
        low, high = min(values), max(values)
        scaled = [(v - low) / (high - low) if high > low else 0.0 for v in values]
        if legacy:
            return np.array([np.exp(beta * v) - 1 + alpha for v in scaled])
        return np.array([np.exp(alpha * v) - beta for v in scaled])

    means = [sum(row) / len(row) for row in rows]
    variances = [sum((row - m) ** 2) / (len(row) - 1) for row, m in zip(rows, means, strict=True)]
    weights = {"variance": lambda: z(variances), "mean": lambda: z(means), "product": lambda: z(means) * z(variances)}
    value = weights[statistic]()
    return 1 / value if inverse else value


def output(feature_map):
    return Output(torch.zeros(len(feature_map), 2), feature_map=feature_map)


def weigh(weighting, feature_map):
    return weighting(torch.zeros(len(feature_map), dtype=torch.long), output(feature_map))


@pytest.mark.parametrize("statistic", ["variance", "mean", "product"])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 0.3), (1.0, 0.9), (0.0, 0.0)])
def test_weights_follow_the_formula(statistic, inverse, alpha, beta):
    feature_map = torch.randn(9, 4, 3, 2) * torch.rand(9, 1, 1, 1) + torch.randn(9, 1, 1, 1)
    expected = reference(feature_map, alpha, beta, statistic, inverse)
    np.testing.assert_allclose(bias_weights(feature_map, alpha, beta, statistic, inverse), expected, rtol=1e-4)
    weighting = BiasWeighting(alpha, beta, statistic, inverse)
    np.testing.assert_allclose(weigh(weighting, feature_map), expected, rtol=1e-4)


@pytest.mark.parametrize("inverse", [False, True])
def test_the_old_formula(inverse):
    feature_map = torch.randn(9, 4, 3, 2) * torch.rand(9, 1, 1, 1)
    weighting = BiasWeighting(0.2, 0.7, inverse=inverse, legacy=True)
    expected = reference(feature_map, 0.2, 0.7, "variance", inverse, legacy=True)
    np.testing.assert_allclose(weigh(weighting, feature_map), expected, rtol=1e-4)


def test_numbers_by_hand():
    # values (1, 1), (0, 2), (0, 4): unbiased variances 0, 2, 8, so v' = 0, 0.25, 1 and z = e^(0.3 v') - 0.3
    feature_map = torch.tensor([[1.0, 1.0], [0.0, 2.0], [0.0, 4.0]]).view(3, 1, 1, 2)
    np.testing.assert_allclose(bias_weights(feature_map), [0.7, 0.777884, 1.049859], rtol=1e-5)
    # means 1, 1, 2: v' = 0, 0, 1
    np.testing.assert_allclose(bias_weights(feature_map, statistic="mean"), [0.7, 0.7, 1.049859], rtol=1e-5)
    # (e^(0.3 v') - 1 + 0.3), the old formula
    legacy = weigh(BiasWeighting(legacy=True), feature_map)
    np.testing.assert_allclose(legacy, [0.3, 0.377884, 0.649859], rtol=1e-5)


def test_ranges_of_the_paper():
    feature_map = torch.randn(500, 8, 4, 4) * torch.rand(500, 1, 1, 1)
    low, high = bias_weights(feature_map).aminmax()
    assert (float(low), float(high)) == (pytest.approx(0.7, abs=1e-4), pytest.approx(1.0499, abs=1e-4))
    low, high = bias_weights(feature_map, inverse=True).aminmax()
    assert (float(low), float(high)) == (pytest.approx(0.9525, abs=1e-4), pytest.approx(1.4286, abs=1e-4))


@pytest.mark.parametrize("feature_map", [torch.randn(1, 3, 2, 2), torch.ones(4, 3, 2, 2), torch.ones(4, 3, 2, 2) * 1e4])
@pytest.mark.parametrize("scaling", ["batch", "running"])
def test_without_a_range_all_weigh_one_minus_beta(feature_map, scaling):
    weights = weigh(BiasWeighting(scaling=scaling), feature_map)
    np.testing.assert_allclose(weights, [0.7] * len(feature_map), rtol=1e-6)


def test_no_gradient_goes_through_the_weights():
    feature_map = torch.randn(4, 3, 2, 2, requires_grad=True)
    assert not bias_weights(feature_map).requires_grad
    for scaling in ("batch", "running"):
        assert not weigh(BiasWeighting(scaling=scaling), feature_map).requires_grad


def test_large_and_half_precision_values():
    feature_map = torch.randn(6, 3, 4, 4)
    np.testing.assert_allclose(bias_weights(feature_map * 1e4), bias_weights(feature_map), rtol=1e-4)
    half = bias_weights(feature_map.bfloat16())
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, bias_weights(feature_map.bfloat16().float()))
    assert bool(torch.isfinite(bias_weights(feature_map.half() * 1000)).all())  # its variance would overflow half


def test_running_scaling_remembers_the_smallest_value():
    weighting = BiasWeighting(scaling="running")
    first = torch.tensor([[0.0, 2.0], [0.0, 4.0]]).view(2, 1, 1, 2)  # variances 2, 8
    np.testing.assert_allclose(weigh(weighting, first), bias_weights(first))  # nothing smaller seen before
    second = torch.tensor([[0.0, 4.0], [0.0, 6.0]]).view(2, 1, 1, 2)  # variances 8, 18: v' = (8 - 2)/10, (18 - 2)/10
    np.testing.assert_allclose(weigh(weighting, second), np.exp([0.18, 0.48]) - 0.3, rtol=1e-6)
    assert weighting.smallest.tolist() == [[2.0]]


def test_running_scaling_survives_a_checkpoint():
    weighting, second = BiasWeighting(scaling="running", statistic="product"), torch.randn(5, 2, 3, 3)
    weigh(weighting, torch.randn(5, 2, 3, 3) * 0.1 - 3)
    state = {name: value.clone() for name, value in weighting.state_dict().items()}
    resumed = BiasWeighting(scaling="running", statistic="product")
    resumed.load_state_dict(state)
    assert torch.equal(weigh(resumed, second), weigh(weighting, second))
    fresh = weigh(BiasWeighting(scaling="running", statistic="product"), second)
    assert not torch.allclose(weigh(weighting, second), fresh)


def test_running_scaling_learns_in_training_only_and_outlives_a_bad_batch():
    weighting = BiasWeighting(scaling="running").eval()
    weigh(weighting, torch.randn(3, 2, 2, 2))
    assert weighting.smallest.tolist() == [[float("inf")]]
    weighting.train()
    weigh(weighting, torch.full((3, 2, 2, 2), torch.nan))
    weigh(weighting, torch.randn(3, 2, 2, 2))
    assert bool(torch.isfinite(weighting.smallest).all())


def test_text_and_errors():
    weighting = Spec.parse("bias(statistic='mean', start=0.1)").build("weighting")
    assert repr(weighting) == (
        "BiasWeighting(alpha=0.3, beta=0.3, statistic='mean', inverse=False, scaling='batch', legacy=False, start=0.1)"
    )
    for make in (lambda **k: bias_weights(torch.randn(2, 1, 2, 2), **k), BiasWeighting):
        with pytest.raises(ValueError, match="beta must be below 1"):
            make(beta=1.0)
        with pytest.raises(ValueError, match="alpha must be at least 0"):
            make(alpha=-0.1)
        with pytest.raises(ValueError, match="statistic must be one of"):
            make(statistic="median")
    with pytest.raises(ValueError, match="alpha must be above 0"):
        BiasWeighting(alpha=0.0, legacy=True)
    assert BiasWeighting(beta=2.0, legacy=True).beta == 2.0
    with pytest.raises(ValueError, match="feature map"):
        BiasWeighting()(torch.tensor([0]), Output(torch.zeros(1, 2)))
    with pytest.raises(ValueError, match="feature map"):
        BiasWeighting()(torch.tensor([0]))
    with pytest.raises(ValueError, match="at least two values"):
        bias_weights(torch.randn(4, 1, 1, 1))
