import numpy as np
import pytest
import torch

from equipoise.losses import LabelSmoothingLoss, label_smoothing_loss


@pytest.mark.parametrize("alpha", [0.0, 0.04, 0.1, 0.9])
def test_reference(agrees_with, alpha):
    def reference(z, y):
        log_p = z - np.log(np.exp(z).sum())
        t = np.full(len(z), alpha / len(z))
        t[y] += 1 - alpha
        return -(t * log_p).sum() / (1 - alpha)

    agrees_with(LabelSmoothingLoss(alpha), reference)


def test_by_hand():
    # labels (0.75, 0.25), -log p = (0.126928, 2.126928): (0.75 * 0.126928 + 0.25 * 2.126928) / 0.5 = 1.253856
    value = label_smoothing_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), alpha=0.5)
    assert value.item() == pytest.approx(1.253856, abs=1e-6)


def test_gradient_towards_the_label_does_not_depend_on_alpha_far_from_it():
    # where p_y is 0 the label's gradient is -((1 - a) + a/C) / (1 - a): -1 up to the label's own share of a/C
    logits = torch.tensor([[-40.0] + [0.0] * 999], dtype=torch.float64, requires_grad=True)
    for alpha in (0.1, 0.5):
        (gradient,) = torch.autograd.grad(LabelSmoothingLoss(alpha)(logits, torch.tensor([0])), logits)
        assert gradient[0, 0].item() == pytest.approx(-1 - alpha / (1 - alpha) / 1000, abs=1e-9)


@pytest.mark.parametrize("alpha", [-0.1, 1.0, 1.5, float("nan"), "0.1"])
def test_refuses(alpha):
    with pytest.raises(ValueError, match="alpha"):
        LabelSmoothingLoss(alpha)
