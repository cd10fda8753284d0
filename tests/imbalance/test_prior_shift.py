"""Class shares of unlabelled data: against the formulas in float64, and on real digits whose shares are shifted."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from equipoise.data import load_task
from equipoise.imbalance import estimate_prior, fit_bias_corrected


def softmax(z):
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def reference(probs_valid, labels, probs_unlabelled):
    """Bias-corrected temperature scaling by scipy, then EM with a plain loop."""
    z, u = np.log(np.float64(probs_valid)), np.log(np.float64(probs_unlabelled))

    def nll(x):
        p = softmax(z * x[0] + x[1:])
        gap = p - np.eye(z.shape[1])[labels]
        return -np.log(p[np.arange(len(z)), labels]).mean(), np.r_[(gap * z).sum(1).mean(), gap.mean(0)]

    x = minimize(nll, np.r_[1.0, np.zeros(z.shape[1])], jac=True, method="BFGS", options={"gtol": 1e-10}).x
    p, pi = softmax(u * x[0] + x[1:]), np.bincount(labels) / len(labels)
    q = pi
    for _ in range(3_000):
        joint = p * q / pi
        q = (joint / joint.sum(1, keepdims=True)).mean(0)
    return q


@pytest.fixture(scope="module")
def digits():
    """Probabilities that a linear classifier of long-tailed digits gives the test images, and their labels."""
    torch.manual_seed(0)
    task = load_task("digits", imbalance="long_tailed", ratio=20)
    x, y = task.train.images.flatten(1).float() / 255, task.train.labels
    linear = torch.nn.Linear(x.shape[1], 10)
    optimizer = torch.optim.LBFGS(linear.parameters(), max_iter=60)

    def loss():
        optimizer.zero_grad()
        value = torch.nn.functional.cross_entropy(linear(x), y) + 1e-3 * linear.weight.square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    with torch.no_grad():
        return linear(task.test.images.flatten(1).float() / 255).softmax(1), task.test.labels


def shifted(labels, rows, shares):
    """Some of `rows`, of each class the share that `shares` has, as many in all as there are."""
    pools = [rows[labels[rows] == c] for c in range(10)]
    total = min(len(pool) / share for pool, share in zip(pools, shares, strict=True))
    return torch.cat([pool[: round(total * share)] for pool, share in zip(pools, shares, strict=True)])


@pytest.mark.parametrize("steepness", [0.7, 0.85, 1.25])
def test_shares_of_shifted_digits_are_found(digits, steepness):
    probs, labels = digits
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1))
    valid, others = order[: len(order) // 2], order[len(order) // 2 :]
    shares = steepness ** torch.arange(10.0).double()
    unlabelled = shifted(labels, others, (shares / shares.sum()).tolist())
    truth = torch.bincount(labels[unlabelled], minlength=10) / len(unlabelled)
    found = estimate_prior(probs[valid], labels[valid], probs[unlabelled])
    assert found.sum() == pytest.approx(1)
    assert (found - truth).abs().sum() <= 0.1
    counted = probs[unlabelled].argmax(1).bincount(minlength=10) / len(unlabelled)
    if steepness > 1:  # rare classes have become frequent: to count predictions is no way to know
        assert (found - truth).abs().sum() < (counted - truth).abs().sum()
    np.testing.assert_allclose(found, reference(probs[valid], labels[valid].numpy(), probs[unlabelled]), atol=1e-4)


def test_the_mean_probability_of_a_class_is_its_share(digits):
    probs, labels = digits
    logits = probs.double().log()
    scale, bias = fit_bias_corrected(logits, labels)
    fitted = (scale * logits + bias).softmax(1).mean(0)
    torch.testing.assert_close(fitted, labels.bincount().double() / len(labels), atol=1e-6, rtol=0)


def test_a_class_without_labels_has_no_share(digits):
    probs, labels = digits
    rows = labels != 4
    found = estimate_prior(probs[rows], labels[rows], probs)
    assert found[4] == 0 and found.sum() == pytest.approx(1)


def test_all_predictions_right_is_no_trouble():
    probs, labels = torch.eye(3).repeat(5, 1), torch.arange(3).repeat(5)
    found = estimate_prior(probs, labels, torch.eye(3)[[0, 0, 1, 2]])
    torch.testing.assert_close(found, torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64), atol=1e-6, rtol=0)


def test_other_shapes_are_refused():
    probs, labels = torch.full((4, 2), 0.5), torch.tensor([0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"\(M, 2\)"):
        estimate_prior(probs, labels, torch.full((4, 3), 0.5))
    with pytest.raises(ValueError, match="label 2"):
        estimate_prior(probs, torch.tensor([0, 1, 0, 2]), probs)
