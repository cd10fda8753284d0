import numpy as np
import pytest
import torch

from equipoise.losses import CrossEntropyLoss, cross_entropy_loss


def test_reference(agrees_with):
    agrees_with(CrossEntropyLoss(), lambda z, y: np.log(np.exp(z).sum()) - z[y])


def test_by_hand():
    # log(1 + e^-2) = log(1.135335) = 0.126928
    value = cross_entropy_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    assert value.item() == pytest.approx(0.126928, abs=1e-6)


def test_a_factor_on_the_whole(agrees_with):
    agrees_with(CrossEntropyLoss(loss_scale=0.05), lambda z, y: 0.05 * (np.log(np.exp(z).sum()) - z[y]))
    with pytest.raises(ValueError, match="loss_scale must be above 0"):
        CrossEntropyLoss(loss_scale=0)
