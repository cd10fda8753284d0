import numpy as np
import pytest
import torch

from equipoise.core import Output, Spec
from equipoise.imbalance import LogitAdjust, logit_adjustment


def balanced_accuracy(logits, target, share=None):
    predicted = np.asarray(logits).argmax(1)
    classes = np.unique(target)
    share = np.ones(int(classes.max()) + 1) if share is None else np.asarray(share)
    recall = [np.mean(predicted[target == c] == c) for c in classes]
    return np.average(recall, weights=share[classes])


def best_by_hand(logits, target, counts, share=None, prior=None):
    z, log_prior = logits.double().numpy(), np.log(np.array(counts) / sum(counts))
    extra = 0 if prior is None else np.log(np.array(prior) / sum(prior))
    scores = {t / 10: balanced_accuracy(z - t / 10 * log_prior + extra, target.numpy(), share) for t in range(21)}
    top = max(scores.values())
    return min((t for t, s in scores.items() if s > top - 1e-9), key=lambda t: abs(t - 1))


def skewed(n=600, counts=(900, 90, 10), scale=2.0):
    """Outputs as a network trained on skewed classes gives them: the prior is in the logits."""
    target = torch.randint(len(counts), (n,))
    logits = torch.randn(n, len(counts)) + scale * torch.eye(len(counts))[target]
    return logits + 1.3 * torch.tensor(counts).log(), target


@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0, 2.0])
def test_adjustment_follows_the_formula(tau):
    counts, logits = [900, 90, 10], torch.randn(5, 3)
    expected = logits.double().numpy() - tau * np.log(np.array(counts) / 1000)
    np.testing.assert_allclose(logit_adjustment(logits, counts, tau), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(LogitAdjust(counts, tau)(Output(logits)), expected, rtol=1e-5, atol=1e-6)


def test_number_by_hand():
    # 2 - log 0.9 = 2.10536, 0 - log 0.1 = 2.30259: the rare class wins
    out = LogitAdjust([90, 10])(Output(torch.tensor([[2.0, 0.0]])))
    np.testing.assert_allclose(out, [[2.105361, 2.302585]], rtol=1e-6)


def test_a_deployment_prior_is_put_in():
    logits = torch.randn(4, 2)
    out = LogitAdjust([90, 10], prior=(3, 1))(Output(logits))
    expected = logits.double().numpy() - np.log([0.9, 0.1]) + np.log([0.75, 0.25])
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)
    same = LogitAdjust([90, 10], prior=(0.9, 0.1))(Output(logits))  # used where it was trained: nothing to do
    torch.testing.assert_close(same, logits)


def test_neutral_leaves_logits_alone():
    logits = torch.randn(4, 2)
    assert torch.equal(LogitAdjust([90, 10], tau=0.0)(Output(logits)), logits)


@pytest.mark.parametrize("prior", [None, (0.5, 0.5, 0.0)])
def test_an_empty_class_is_finite(prior):
    out = LogitAdjust([90, 0, 10], prior=prior)(Output(torch.randn(4, 3) * 1e4))
    assert bool(torch.isfinite(out).all())
    at_zero = logit_adjustment(torch.zeros(1, 3), [90, 0, 10], 1.0)
    assert float(at_zero[0, 1]) == pytest.approx(-np.log(1e-12), rel=1e-6)


def test_bfloat16_is_computed_in_float32():
    logits = torch.randn(4, 2).bfloat16()
    out = logit_adjustment(logits, [90, 10], 1.0)
    assert out.dtype == torch.float32
    torch.testing.assert_close(out, logit_adjustment(logits.float(), [90, 10], 1.0))


@pytest.mark.parametrize("seed", range(5))
def test_tau_is_chosen_for_balanced_accuracy(seed):
    torch.manual_seed(seed)
    counts = (900, 90, 10)
    logits, target = skewed(counts=counts)
    adjust = LogitAdjust(counts, tau=None).fit(Output(logits), target)
    assert adjust.tau_ == best_by_hand(logits, target, counts)
    assert adjust.tau is None
    before = balanced_accuracy(logits.numpy(), target.numpy())
    assert balanced_accuracy(adjust(Output(logits)).numpy(), target.numpy()) > before + 0.05


def test_with_a_prior_tau_is_chosen_for_accuracy_under_it():
    counts, prior = (900, 90, 10), (0.2, 0.3, 0.5)
    logits, target = skewed(counts=counts)
    adjust = LogitAdjust(counts, tau=None, prior=prior).fit(Output(logits), target)
    assert adjust.tau_ == best_by_hand(logits, target, counts, share=prior, prior=prior)


def test_of_equals_the_nearest_to_one_is_taken():
    easy, target = torch.eye(2)[[0, 1, 1]] * 1e4, torch.tensor([0, 1, 1])
    assert LogitAdjust([9, 1], tau=None).fit(Output(easy), target).tau_ == 1.0


def test_classes_absent_from_the_held_out_data_are_left_out():
    logits, target = skewed()
    keep = target != 2
    adjust = LogitAdjust((900, 90, 10), tau=None).fit(Output(logits[keep]), target[keep])
    assert adjust.tau_ == best_by_hand(logits[keep], target[keep], (900, 90, 10))


def test_a_given_tau_is_not_fitted():
    logits, target = skewed()
    assert LogitAdjust((900, 90, 10), tau=0.3).fit(Output(logits), target).tau_ == 0.3


def test_text_and_errors():
    adjust = Spec.parse("logit_adjust(tau=2, prior=(0.5, 0.5))").build("posthoc", class_counts=torch.tensor([9, 1]))
    assert adjust.tau == 2.0 and adjust.prior == (0.5, 0.5)
    with pytest.raises(ValueError, match="call fit"):
        LogitAdjust([9, 1], tau=None)(Output(torch.zeros(1, 2)))
    with pytest.raises(ValueError, match="there are none"):
        LogitAdjust([9, 1], tau=None).fit(Output(torch.zeros(0, 2)), torch.zeros(0, dtype=torch.long))
    with pytest.raises(ValueError, match=r"shape \(N, 2\)"):
        logit_adjustment(torch.zeros(1, 3), [9, 1])
    with pytest.raises(ValueError, match="tau must be at least 0"):
        LogitAdjust([9, 1], tau=-1.0)
    for prior in [(1.0,), (0.0, 0.0), (1.0, -1.0)]:
        with pytest.raises(ValueError, match="prior"):
            LogitAdjust([9, 1], prior=prior)
