import numpy as np
import pytest
import torch

from equipoise.losses import FocalLoss, focal_loss


@pytest.mark.parametrize("gamma", [0.0, 0.3, 0.5, 1.0, 2.0, 5.0])
def test_reference(agrees_with, gamma):
    def reference(z, y):
        p = np.exp(z) / np.exp(z).sum()
        return -((1 - p[y]) ** gamma) * np.log(p[y])

    agrees_with(FocalLoss(gamma), reference)


def test_by_hand():
    # p = 1 / (1 + e^-2) = 0.880797: (1 - 0.880797)^2 * 0.126928 = 0.00180358
    value = focal_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), gamma=2.0)
    assert value.item() == pytest.approx(0.00180358, rel=1e-5)


@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.9])
def test_a_certain_sample_has_gradient_zero(gamma):
    # the textbook form gives 0 * inf here
    logits = torch.tensor([[200.0, 0.0]], requires_grad=True)
    FocalLoss(gamma)(logits, torch.tensor([0])).backward()
    assert logits.grad.tolist() == [[0.0, 0.0]]


def test_refuses():
    with pytest.raises(ValueError, match="gamma must be at least 0"):
        FocalLoss(gamma=-1)
