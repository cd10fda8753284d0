import torch
from equipoise_poly1 import poly1_loss

from equipoise.testing import check_method


def test_by_hand():
    # -log(1/2) + 2 · (1 - 1/2)
    torch.testing.assert_close(poly1_loss(torch.zeros(1, 2), torch.tensor([0]), 2.0), torch.tensor([1.6931472]))


def test_it_does_what_every_loss_does():
    check_method("loss", "poly1")
