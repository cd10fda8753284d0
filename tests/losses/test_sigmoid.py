import numpy as np
import pytest
import torch

from equipoise.losses import SigmoidLoss, sigmoid_loss


@pytest.mark.parametrize("spread", [3.0, 15.0])
def test_reference(agrees_with, spread):
    agrees_with(SigmoidLoss(), lambda z, y: np.log(1 + np.exp(z)).sum() - z[y], spread=spread)


def test_by_hand():
    # log(1 + e^2) + log(1 + e^0) - 2 = 2.126928 + 0.693147 - 2 = 0.820075
    value = sigmoid_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    assert value.item() == pytest.approx(0.820075, abs=1e-6)


def test_link_gives_the_share_of_each_sigmoid():
    logits = torch.tensor([[2.0, 0.0, -1.0]])
    share = logits.sigmoid() / logits.sigmoid().sum()
    torch.testing.assert_close(SigmoidLoss().link(logits).softmax(1), share)


@pytest.mark.parametrize("tau", [0.04, 0.5])
def test_normalized_logits_reference(agrees_with, tau):
    def reference(z, y):
        z = z / (tau * np.sqrt((z**2).sum())) - np.log(len(z))
        return np.log(1 + np.exp(z)).sum() - z[y]

    agrees_with(SigmoidLoss(tau=tau), reference)


def test_predictions_of_normalized_logits():
    logits = torch.tensor([[3.0, 4.0]], dtype=torch.float64)
    # (3, 4) has length 5: (0.6, 0.8) / 0.5 - log 2 = (0.506853, 0.906853)
    p = 1 / (1 + np.exp(-np.array([[0.506853, 0.906853]])))
    np.testing.assert_allclose(SigmoidLoss(tau=0.5).link(logits).softmax(1), p / p.sum(), atol=1e-6)


def test_refuses_a_temperature_of_0():
    with pytest.raises(ValueError, match="tau must be above 0"):
        SigmoidLoss(tau=0)
