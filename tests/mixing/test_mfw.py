import numpy as np
import pytest
import torch
from torch import nn

from equipoise.core import Spec
from equipoise.mixing import MajorFeatureWeakening, mfw_weights

LONG_TAILED = [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]


def reference(counts, beta, spread):
    """s(N) from the paper's Eq. 12, class by class."""
    n = np.array(counts, dtype=np.float64)
    log_mean = sum(np.log(v) for v in n) / len(n)
    mu = np.exp(log_mean)
    if spread == "geometric":
        gamma = np.exp(np.sqrt(sum((np.log(v) - log_mean) ** 2 for v in n) / len(n)))
    else:
        gamma = np.sqrt(sum((v - n.mean()) ** 2 for v in n) / len(n))
    return [0.5 / (1 + np.exp(-(v - mu) / (beta * gamma))) for v in n]


@pytest.mark.parametrize("spread", ["geometric", "arithmetic"])
@pytest.mark.parametrize("counts", [LONG_TAILED, [30, 20, 10], [1, 1, 2]])
@pytest.mark.parametrize("beta", [2.0, 0.5, 100.0])
def test_weights_follow_the_formula(counts, beta, spread):
    with np.errstate(over="ignore"):
        expected = reference(counts, beta, spread)
    np.testing.assert_allclose(mfw_weights(counts, beta, spread), expected, rtol=1e-5, atol=1e-7)


def test_values_of_the_long_tailed_task():
    # geometric mean 499.6, std 1537: s(5000) = 0.5 sigmoid(4500.4 / 3074) = 0.406 and
    # s(50) = 0.5 sigmoid(-449.6 / 3074) = 0.232
    arithmetic = mfw_weights(LONG_TAILED, spread="arithmetic")
    assert float(arithmetic[0]) == pytest.approx(0.406, abs=5e-4)
    assert float(arithmetic[-1]) == pytest.approx(0.232, abs=5e-4)
    geometric = mfw_weights(LONG_TAILED)
    np.testing.assert_allclose(geometric[:5], [0.5] * 5, atol=1e-6)
    assert float(geometric[-3:].max()) < 1e-12


def test_number_by_hand():
    # N = 8, 2: mu = 4, spread of the logs log 2, so gamma = 2 and beta gamma = 4:
    # s(8) = 0.5 / (1 + 1/e) = 0.365529, s(2) = 0.5 / (1 + e^0.5) = 0.188770
    np.testing.assert_allclose(mfw_weights([8, 2]), [0.365529, 0.188770], rtol=1e-5)


@pytest.mark.parametrize("spread", ["geometric", "arithmetic"])
@pytest.mark.parametrize("beta", [1e-300, 0.01, 2.0])
def test_nothing_overflows(spread, beta):
    weights = mfw_weights([10**15, 10**9, 500, 1], beta, spread)
    assert bool(((weights >= 0) & (weights <= 0.5)).all())
    assert bool((weights.diff() <= 0).all())
    if beta < 0.01:
        assert weights[0] == 0.5 and weights[-1] < 1e-3


@pytest.mark.parametrize("spread", ["geometric", "arithmetic"])
@pytest.mark.parametrize("beta", [0.01, 2.0])
@pytest.mark.parametrize("n", [1, 7, 613])
def test_classes_of_one_size_are_all_weakened_alike(spread, beta, n):
    np.testing.assert_allclose(mfw_weights([n] * 10, beta, spread), [0.25] * 10, atol=1e-6)


@pytest.mark.parametrize("spread", ["geometric", "arithmetic"])
def test_an_empty_class_changes_nothing_for_the_others(spread):
    weights = mfw_weights([30, 0, 20, 10], spread=spread)
    torch.testing.assert_close(weights[[0, 2, 3]], mfw_weights([30, 20, 10], spread=spread))
    assert 0 <= weights[1] < weights[3]


def test_mixing_follows_the_formula_and_keeps_labels():
    torch.manual_seed(1)
    target, z = torch.tensor([0, 1, 2, 0, 1, 2]), torch.randn(6, 3, 2, 2)
    mix = MajorFeatureWeakening([50, 20, 10], beta=2.0)
    mixed = mix(z, target)
    lam, partner = mixed.lam.double().numpy(), mixed.partner.tolist()
    assert sorted(partner) == list(range(6))
    for i in range(6):
        expected = (1 - lam[i]) * z[i].double().numpy() + lam[i] * z[partner[i]].double().numpy()
        np.testing.assert_allclose(mixed.inputs[i], expected, atol=1e-6)
    assert mixed.plan.label_lam is None and mixed.label_lam.tolist() == [1.0] * 6


def test_lam_is_the_class_share_of_a_beta_draw():
    mix = MajorFeatureWeakening([50, 20, 10], alpha=1.0, spread="arithmetic")
    target = torch.arange(3).repeat_interleave(20_000)
    lam = mix.plan(target).lam.view(3, -1)
    s = mfw_weights([50, 20, 10], spread="arithmetic")
    torch.testing.assert_close(lam.mean(1), s / 2, rtol=0.02, atol=0)  # Beta(1, 1) has mean 1/2, std 0.289
    assert bool((lam.amax(1) <= s).all()) and float(lam.max()) <= 0.5
    assert len(lam[0].unique()) > 10_000  # a draw for each sample


def test_rare_classes_are_left_alone_and_lend_their_features():
    torch.manual_seed(2)
    network = nn.Linear(2, 2)
    target = torch.tensor([0, 0, 0, 1, 1, 1])
    z = torch.randn(6, 2, requires_grad=True)
    mix = MajorFeatureWeakening([5000, 10], beta=0.01)
    with mix.at(network, target) as mixed:
        out = network(z)
    assert torch.equal(out[3:], network(z)[3:])
    (gradient,) = torch.autograd.grad(out[:3].sum(), z)
    lenders = [i for i in mixed.partner[:3].tolist() if i >= 3]
    assert lenders
    assert [i for i in range(3, 6) if gradient[i].abs().sum() > 0] == sorted(lenders)


def test_text_and_repr():
    mix = Spec.parse("mfw(alpha=5, spread='arithmetic')").build("mix", class_counts=torch.tensor([4, 2]))
    assert repr(mix) == (
        "MajorFeatureWeakening(class_counts=[4, 2], alpha=5.0, beta=2.0, spread='arithmetic', site='stage1')"
    )
    assert MajorFeatureWeakening([4, 2], site="stem").site == "stem"
    assert not mix.state_dict()


def test_errors():
    with pytest.raises(ValueError, match="beta must be above 0"):
        MajorFeatureWeakening([4, 2], beta=0.0)
    with pytest.raises(ValueError, match="spread must be one of"):
        MajorFeatureWeakening([4, 2], spread="both")
    with pytest.raises(ValueError, match="alpha must be above 0"):
        MajorFeatureWeakening([4, 2], alpha=0)
    with pytest.raises(ValueError, match="no class has any image"):
        MajorFeatureWeakening([0, 0])
