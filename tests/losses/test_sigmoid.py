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
