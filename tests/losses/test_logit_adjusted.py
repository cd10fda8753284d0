import numpy as np
import pytest
import torch

from equipoise.losses import BalancedSoftmaxLoss, LogitAdjustedLoss, logit_adjusted_loss

COUNTS = [500, 120, 33, 7, 1]


@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0, 2.5])
def test_reference(agrees_with, tau):
    prior = np.array(COUNTS) / sum(COUNTS)

    def reference(z, y):
        adjusted = z + tau * np.log(prior)
        return np.log(np.exp(adjusted).sum()) - adjusted[y]

    agrees_with(LogitAdjustedLoss(COUNTS, tau), reference)


def test_by_hand():
    # equal logits: 90^0.5 : 10^0.5 = 3 : 1, so -log(1 / 4) = 1.386294
    value = logit_adjusted_loss(
        torch.zeros(1, 2), torch.tensor([1]), tau_log_prior=0.5 * torch.tensor([0.9, 0.1]).log()
    )
    assert value.item() == pytest.approx(1.386294, abs=1e-6)


def test_is_the_balanced_softmax_at_tau_1():
    logits, target = torch.randn(6, 5), torch.arange(6) % 5
    torch.testing.assert_close(
        LogitAdjustedLoss(COUNTS, 1.0)(logits, target), BalancedSoftmaxLoss(COUNTS)(logits, target)
    )


def test_an_empty_class_at_tau_0_is_cross_entropy_not_nan():
    logits, target = torch.randn(6, 3), torch.arange(6) % 3
    torch.testing.assert_close(
        LogitAdjustedLoss([4, 0, 2], 0.0)(logits, target), torch.nn.functional.cross_entropy(logits, target)
    )


@pytest.mark.parametrize("tau", [-1.0, float("inf"), None])
def test_refuses(tau):
    with pytest.raises(ValueError, match="tau"):
        LogitAdjustedLoss(COUNTS, tau)
