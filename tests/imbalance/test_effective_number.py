import numpy as np
import pytest
import torch

from equipoise.core import Spec
from equipoise.imbalance import EffectiveNumber, effective_number_weights


def reference(counts, beta):
    """The effective number is the sum 1 + beta + beta² + … of n terms (the paper's Eq. 2, before it is summed)."""
    inverse = np.array([1 / sum(beta ** np.arange(n, dtype=np.float64)) if n else 0.0 for n in counts])
    return inverse * len(counts) / inverse.sum()


@pytest.mark.parametrize("beta", [0.0, 0.5, 0.9, 0.999, 0.9999, 1.0])
@pytest.mark.parametrize("counts", [[5000, 500, 50], [1, 1], [7], [3, 0, 9, 1]])
def test_weights_follow_the_formula(counts, beta):
    weights = effective_number_weights(counts, beta)
    np.testing.assert_allclose(weights, reference(counts, beta), rtol=1e-6)
    assert float(weights.double().sum()) == pytest.approx(len(counts), rel=1e-6)


def test_number_by_hand():
    # beta 0.5: E_1 = 1, E_2 = 1.5, so 1 and 2/3, scaled to sum to 2: 1.2 and 0.8
    np.testing.assert_allclose(effective_number_weights([1, 2], 0.5), [1.2, 0.8], rtol=1e-6)


def test_no_weighting_at_beta_zero_and_inverse_frequency_at_one():
    assert effective_number_weights([1000, 10, 1], 0.0).tolist() == [1.0, 1.0, 1.0]
    # 1/60, 1/30, 1/10 are as 1 : 2 : 6, scaled to sum to 3
    np.testing.assert_allclose(effective_number_weights([60, 30, 10], 1.0), [1 / 3, 2 / 3, 2.0], rtol=1e-6)


@pytest.mark.parametrize("beta", [1 - 1e-9, 1 - 1e-12, 1 - 2**-53])
def test_beta_towards_one_approaches_inverse_frequency(beta):
    counts = [100_000, 100, 1]
    close = effective_number_weights(counts, beta).double()
    limit = effective_number_weights(counts, 1.0).double()
    np.testing.assert_allclose(close, limit, rtol=1e-4)


@pytest.mark.parametrize("beta", [5e-324, 1e-9, 0.9999, 1.0])
def test_huge_counts_are_finite(beta):
    weights = effective_number_weights([10**15, 10**9, 1], beta)
    assert bool(torch.isfinite(weights).all()) and bool((weights > 0).all())
    assert bool((weights.diff() >= 0).all())


def test_an_empty_class_has_weight_zero_and_the_rest_sums_to_all_classes():
    weights = effective_number_weights([100, 0, 10, 0], 0.99)
    assert weights[1] == weights[3] == 0
    torch.testing.assert_close(weights[[0, 2]], 2 * effective_number_weights([100, 10], 0.99))


def test_module_looks_the_weights_up():
    weighting = EffectiveNumber([100, 10, 1], beta=0.9)
    weights = effective_number_weights([100, 10, 1], 0.9)
    target = torch.tensor([2, 0, 0, 1])
    assert torch.equal(weighting(target), weights[target])
    assert weighting(target).dtype == torch.float32
    assert weighting(torch.tensor([1])).shape == (1,)
    assert weighting(target[:0]).shape == (0,)


def test_text_and_repr():
    weighting = Spec.parse("effective_number(beta=0.99, start=0.8)").build("weighting", class_counts=[30, 3])
    assert repr(weighting) == "EffectiveNumber(class_counts=[30, 3], beta=0.99, start=0.8, normalize='classes')"


@pytest.mark.parametrize("beta", [-0.1, 1.1, float("nan")])
def test_beta_lies_between_zero_and_one(beta):
    with pytest.raises(ValueError, match="beta"):
        EffectiveNumber([3, 1], beta=beta)
    with pytest.raises(ValueError, match="class_counts"):
        EffectiveNumber([3, -1])
