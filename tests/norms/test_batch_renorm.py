"""Batch renormalization: r, d, their schedule, and inference."""

import numpy as np
import pytest
import torch
from torch import nn

from equipoise.norms import BatchRenorm2d
from equipoise.norms.batch_renorm import renorm_limits


def renorm(x, mean, std, gamma, beta, r_max, d_max, eps=1e-5):
    """The paper's formula on (N, C, positions), float64."""
    mu, sigma = x.mean((0, 2)), np.sqrt(x.var((0, 2)) + eps)
    r = np.clip(sigma / std, 1 / r_max, r_max)
    d = np.clip((mu - mean) / std, -d_max, d_max)
    hat = (x - mu[:, None]) / sigma[:, None] * r[:, None] + d[:, None]
    return gamma[:, None] * hat + beta[:, None], mu, sigma


def test_the_schedule():
    limits = [
        [v.item() for v in renorm_limits(torch.tensor(s), 3.0, 5.0, 5000, 40_000, 25_000)]
        for s in (0, 5000, 15_000, 25_000, 40_000, 10**6)
    ]
    expected = [[1, 0], [1, 0], [1 + 2 * 10 / 35, 2.5], [1 + 2 * 20 / 35, 5], [3, 5], [3, 5]]
    np.testing.assert_allclose(limits, expected, rtol=1e-6)


def test_before_the_schedule_starts_it_is_batch_norm():
    ours, stock, x = BatchRenorm2d(3), nn.BatchNorm2d(3), torch.randn(6, 3, 4, 4) * 2 + 1
    torch.testing.assert_close(ours(x), stock(x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("shift", [0.5, 20.0])  # inside the limits of d and far outside
def test_values_and_moving_averages(shift):
    norm = BatchRenorm2d(2, warmup=0, r_steps=1, d_steps=1)
    norm.steps += 1
    mean, std = np.array([0.5, -0.5]), np.array([2.0, 0.1])
    norm.running_mean.copy_(torch.tensor(mean))
    norm.running_std.copy_(torch.tensor(std))
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.5, -0.5]))
        norm.bias.copy_(torch.tensor([0.25, 1.0]))
    x = torch.randn(5, 2, 3, 3) + shift
    gamma, beta = norm.weight.detach().double().numpy(), norm.bias.detach().double().numpy()
    expected, mu, sigma = renorm(x.flatten(2).double().numpy(), mean, std, gamma, beta, 3.0, 5.0)
    np.testing.assert_allclose(norm(x).detach().flatten(2), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(norm.running_mean, 0.99 * mean + 0.01 * mu, rtol=1e-5)
    np.testing.assert_allclose(norm.running_std, 0.99 * std + 0.01 * sigma, rtol=1e-5)
    inferred = (x.numpy() - norm.running_mean.numpy()[:, None, None]) / norm.running_std.numpy()[:, None, None]
    expected = gamma[:, None, None] * inferred + beta[:, None, None]
    np.testing.assert_allclose(norm.eval()(x).detach(), expected, rtol=1e-4, atol=1e-4)


def test_gradient_does_not_flow_through_r_and_d():
    norm = BatchRenorm2d(2, warmup=0, r_steps=1, d_steps=1).double()
    norm.steps += 1
    x = torch.randn(4, 2, 2, 2, dtype=torch.float64, requires_grad=True)
    grad = torch.randn(4, 2, 2, 2, dtype=torch.float64)
    norm.weight.data.copy_(torch.tensor([1.5, -0.5]))
    found = torch.autograd.grad(norm(x), [x, norm.weight, norm.bias], grad)
    std, mean = (x.var((0, 2, 3), correction=0) + 1e-5).sqrt(), x.mean((0, 2, 3))
    r, d = std.detach().clamp(1 / 3, 3), mean.detach().clamp(-5, 5)  # σ is 1, μ 0
    corrected = (x - mean[:, None, None]) / std[:, None, None] * r[:, None, None] + d[:, None, None]
    y = corrected * norm.weight[:, None, None] + norm.bias[:, None, None]
    torch.testing.assert_close(found, torch.autograd.grad(y, [x, norm.weight, norm.bias], grad))


def test_edges_and_checkpoints():
    norm = BatchRenorm2d(2, r_max=1.0, d_max=0.0)
    assert torch.isfinite(norm(torch.randn(2, 2, 1, 1))).all() and int(norm.steps) == 1
    assert norm(torch.randn(4, 2, 3, 3).bfloat16()).dtype == torch.bfloat16
    stock = nn.BatchNorm2d(2)
    stock(torch.randn(8, 2, 3, 3) * 4)
    norm.load_state_dict(stock.state_dict())
    x = torch.randn(3, 2, 3, 3)
    torch.testing.assert_close(norm.eval()(x), stock.eval()(x), atol=1e-5, rtol=1e-5)
    with pytest.raises(ValueError, match="r_max must be at least 1"):
        BatchRenorm2d(2, r_max=0.5)
