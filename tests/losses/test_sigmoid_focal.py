import numpy as np
import pytest
import torch

from equipoise.losses import SigmoidFocalLoss, SigmoidLoss, sigmoid_focal_loss


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 1.7, 2.0, 4.0])
@pytest.mark.parametrize("spread", [3.0, 12.0])
def test_reference(agrees_with, gamma, spread):
    def reference(z, y):
        z_t = np.where(np.arange(len(z)) == y, z, -z)
        p = 1 / (1 + np.exp(-z_t))
        q = 1 / (1 + np.exp(z_t))
        return -(q**gamma * np.log(p)).sum()

    agrees_with(SigmoidFocalLoss(gamma), reference, spread=spread)


def test_by_hand():
    # label: (1 - 0.880797)^2 * 0.126928 = 0.00180358; other: 0.5^2 * 0.693147 = 0.173287; together 0.175090
    value = sigmoid_focal_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), gamma=2.0)
    assert value.item() == pytest.approx(0.175090, abs=1e-6)


def test_gamma_0_is_the_sigmoid_loss():
    logits, target = torch.randn(6, 5), torch.arange(6) % 5
    torch.testing.assert_close(SigmoidFocalLoss(0.0)(logits, target), SigmoidLoss()(logits, target))


def test_a_label_far_below_does_not_fade():
    # the released modulator becomes 0 below about -88; it is 1 there, so the loss is the distance itself
    value = sigmoid_focal_loss(torch.tensor([[-200.0, -200.0]]), torch.tensor([0]), gamma=0.5)
    assert value.item() == pytest.approx(200.0)


def test_link_gives_the_share_of_each_sigmoid():
    logits = torch.tensor([[2.0, 0.0, -1.0]])
    share = logits.sigmoid() / logits.sigmoid().sum()
    torch.testing.assert_close(SigmoidFocalLoss().link(logits).softmax(1), share)


def test_refuses():
    with pytest.raises(ValueError, match="gamma must be at least 0"):
        SigmoidFocalLoss(gamma=-1)
