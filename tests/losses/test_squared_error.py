import numpy as np
import pytest
import torch

from equipoise.losses import SquaredErrorLoss, squared_error_loss


@pytest.mark.parametrize(
    ("kappa", "magnitude", "loss_scale", "per_class"),
    [(9.0, 60.0, 1.0, True), (9.0, 60.0, 10.0, False), (1.0, 1.0, 1.0, True), (0.0, -2.0, 3.0, False)],
)
def test_reference(agrees_with, kappa, magnitude, loss_scale, per_class):
    def reference(z, y):
        t = (np.arange(len(z)) == y).astype(float)
        total = (kappa * t * (z - magnitude) ** 2 + (1 - t) * z**2).sum()
        return loss_scale * total / (len(z) if per_class else 1)

    agrees_with(SquaredErrorLoss(kappa, magnitude, loss_scale, per_class), reference)


def test_by_hand():
    # (4 * (2 - 3)^2 + 1^2) / 2 = 2.5
    value = squared_error_loss(torch.tensor([[2.0, 1.0]]), torch.tensor([0]), kappa=4.0, magnitude=3.0)
    assert value.item() == 2.5


def test_the_released_form_is_as_many_times_larger_as_there_are_classes():
    logits, target = torch.randn(6, 5), torch.arange(6) % 5
    paper, released = SquaredErrorLoss(), SquaredErrorLoss(per_class=False)
    torch.testing.assert_close(5 * paper(logits, target), released(logits, target))


@pytest.mark.parametrize("parameters", [{"kappa": -1}, {"magnitude": float("nan")}, {"loss_scale": 0}])
def test_refuses(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        SquaredErrorLoss(**parameters)
