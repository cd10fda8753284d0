import numpy as np
import pytest
import torch

from equipoise.core import Spec
from equipoise.imbalance import InverseFrequency, inverse_frequency_weights


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.5])
@pytest.mark.parametrize("counts", [[5000, 500, 50], [1, 1], [7], [3, 0, 9, 1]])
def test_weights_follow_the_formula(counts, power):
    raw = np.array([float(n) ** -power if n else 0.0 for n in counts])
    expected = raw * len(counts) / raw.sum()
    np.testing.assert_allclose(inverse_frequency_weights(counts, power), expected, rtol=1e-6)


def test_number_by_hand():
    # 1/4 and 1 scaled to sum to 2; with the square root 1/2 and 1
    np.testing.assert_allclose(inverse_frequency_weights([4, 1]), [0.4, 1.6], rtol=1e-6)
    np.testing.assert_allclose(inverse_frequency_weights([4, 1], 0.5), [2 / 3, 4 / 3], rtol=1e-6)


def test_large_counts_and_powers_are_finite():
    weights = inverse_frequency_weights([10**15, 10**15, 10**3], power=20.0)
    assert bool(torch.isfinite(weights).all()) and float(weights.sum()) == pytest.approx(3)


def test_module_text_and_errors():
    weighting = Spec.parse("inverse_frequency(power=0.5)").build("weighting", class_counts=[4, 1])
    torch.testing.assert_close(weighting(torch.tensor([1, 0])), torch.tensor([4 / 3, 2 / 3]))
    assert repr(weighting) == "InverseFrequency(class_counts=[4, 1], power=0.5, start=0.0, normalize='classes')"
    with pytest.raises(ValueError, match="power must be at least 0"):
        InverseFrequency([4, 1], power=-1)
