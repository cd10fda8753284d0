import numpy as np
import pytest
import torch

from equipoise.losses import LogitNormLoss, logit_norm_loss


@pytest.mark.parametrize("tau", [0.04, 0.14, 1.0, 5.0])
@pytest.mark.parametrize("spread", [3.0, 1e-3])
def test_reference(agrees_with, tau, spread):
    def reference(z, y):
        unit = z / (tau * np.sqrt((z * z).sum()))
        return np.log(np.exp(unit).sum()) - unit[y]

    agrees_with(LogitNormLoss(tau), reference, spread=spread)


def test_below_the_smallest_norm_the_norm_is_a_constant(agrees_with):
    def reference(z, y):
        scaled = z / (0.5 * 1e-6)
        return np.log(np.exp(scaled).sum()) - scaled[y]

    agrees_with(LogitNormLoss(0.5), reference, spread=1e-8)


def test_by_hand():
    # (3, 4) / 5 = (0.6, 0.8): log(1 + e^0.2) = 0.798139
    value = logit_norm_loss(torch.tensor([[3.0, 4.0]]), torch.tensor([0]), tau=1.0)
    assert value.item() == pytest.approx(0.798139, abs=1e-6)


def test_only_the_direction_counts():
    logits, target = torch.randn(6, 5), torch.arange(6) % 5
    torch.testing.assert_close(LogitNormLoss()(logits, target), LogitNormLoss()(100 * logits, target))


def test_logits_of_zero_have_a_finite_gradient():
    logits = torch.zeros(2, 5, requires_grad=True)
    value = LogitNormLoss()(logits, torch.tensor([0, 1]))
    value.backward()
    assert value.item() == pytest.approx(np.log(5), abs=1e-6)
    assert logits.grad.isfinite().all()


def test_a_tiny_tau_does_not_underflow():
    # unit vectors (1, 0) and tau 1e-3: the other class is 1000 behind, far below the smallest float32 probability
    value = LogitNormLoss(tau=1e-3)(torch.tensor([[2.0, 0.0]]), torch.tensor([1]))
    assert value.item() == pytest.approx(1000, rel=1e-6)


def test_link_has_length_one_over_tau():
    torch.testing.assert_close(LogitNormLoss(0.1).link(torch.randn(3, 5)).norm(dim=1), torch.full((3,), 10.0))


def test_refuses():
    with pytest.raises(ValueError, match="tau must be above 0"):
        LogitNormLoss(tau=0)
