import numpy as np
import pytest
import torch

from equipoise.losses import CDTLoss, cdt_loss, cdt_temperatures

COUNTS = [500, 120, 33, 7, 1]


@pytest.mark.parametrize("gamma", [0.0, 0.1, 0.2, 1.0])
def test_reference(agrees_with, gamma):
    temperatures = (500 / np.array(COUNTS)) ** gamma
    agrees_with(CDTLoss(COUNTS, gamma), lambda z, y: np.log(np.exp(z / temperatures).sum()) - z[y] / temperatures[y])


def test_by_hand():
    # temperatures (100 / 1)^0.5 = 10 and 1: logits 0 and 10 / 10, log(1 + e^-1) = 0.313262
    temperatures = cdt_temperatures(torch.tensor([100, 1]), gamma=0.5)
    assert temperatures.tolist() == [1.0, 10.0]
    value = cdt_loss(torch.tensor([[0.0, 10.0]]), torch.tensor([1]), coolness=1 / temperatures)
    assert value.item() == pytest.approx(0.313262, abs=1e-6)


def test_an_empty_class_has_the_temperature_of_one_image():
    assert cdt_temperatures(torch.tensor([0, 1, 16]), gamma=0.5).tolist() == [4.0, 4.0, 1.0]


def test_predicts_from_bare_logits():
    logits = torch.randn(2, 5)
    assert torch.equal(CDTLoss(COUNTS).link(logits), logits)


def test_refuses():
    with pytest.raises(ValueError, match="gamma must be at least 0"):
        CDTLoss(COUNTS, gamma=-0.2)
