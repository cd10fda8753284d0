"""Group norm is PyTorch's, with moving averages beside it."""

import numpy as np
import pytest
import torch
from torch import nn

from equipoise.norms import GroupNorm2d


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_it_is_pytorchs_in_training_and_inference(layout):
    ours, stock = GroupNorm2d(6, groups=3), nn.GroupNorm(3, 6)
    x = (torch.randn(5, 6, 4, 3) * 2 + 1).contiguous(memory_format=layout)
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    torch.testing.assert_close(ours(a), stock(b), atol=1e-5, rtol=1e-5)
    (ours(a) ** 3).sum().backward()
    (stock(b) ** 3).sum().backward()
    torch.testing.assert_close(a.grad, b.grad, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(ours.weight.grad, stock.weight.grad, atol=1e-4, rtol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(ours.eval()(x), stock(x), atol=1e-5, rtol=1e-5)


def test_the_formula(reference):
    norm, x = GroupNorm2d(4, groups=2), torch.randn(3, 4, 5, 2) + 3
    with torch.no_grad():
        norm.weight.uniform_(0.5, 1.5)
    gamma, beta = norm.weight.detach().double().numpy(), np.zeros(4)
    expected = reference.block_norm(x.flatten(2).double().numpy(), gamma, beta, 1, 2)
    np.testing.assert_allclose(norm(x).detach().flatten(2), expected, atol=1e-5)


def test_moving_averages_are_those_of_the_batch(reference):
    norm, batches = GroupNorm2d(4, groups=2), [torch.randn(3, 4, 2, 2) + 3 for _ in range(3)]
    for x in batches:
        norm(x)
    squares = [(x.double().numpy() ** 2).mean((0, 2, 3)) for x in batches]
    np.testing.assert_allclose(norm.running_square, reference.moving_average(squares, 1.0, 0.01), rtol=1e-5)


def test_any_number_of_channels():
    for channels, groups in ((1, 32), (7, 4), (48, 32), (64, 32)):
        norm = GroupNorm2d(channels, groups)
        assert torch.isfinite(norm(torch.randn(2, channels, 2, 2))).all()
    assert GroupNorm2d(48).block().groups == 24 and GroupNorm2d(16).block().groups == 16


def test_batches_of_one_value_and_half_precision():
    norm = GroupNorm2d(3, groups=3)
    assert norm(torch.randn(2, 3, 1, 1)).abs().max() < 1e-3  # by itself, where ghosts would pair
    assert GroupNorm2d(4, 2)(torch.randn(3, 4, 2, 2).bfloat16()).dtype == torch.bfloat16
