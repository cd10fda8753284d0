"""Slow float64 references, written from the formulas."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch


def example_ranges(n, examples, values):
    """Contiguous pieces of the batch; a single last value joins the piece before."""
    least = 2 if values == 1 else 1
    cuts = list(range(0, n, max(examples, least))) + [n]
    if len(cuts) > 2 and cuts[-1] - cuts[-2] < least:
        del cuts[-2]
    return [range(a, b) for a, b in itertools.pairwise(cuts)]


def block_norm(x, gamma, beta, examples, groups, eps=1e-5):
    """(x - mean) / sqrt(var + eps) over every block of examples and channels, one by one; x (N, C, positions)."""
    x, y = np.asarray(x, np.float64), np.empty(x.shape)
    n, channels, positions = x.shape
    width = channels // groups
    for rows in example_ranges(n, examples, width * positions):
        for g in range(groups):
            block = x[rows.start : rows.stop, g * width : (g + 1) * width]
            mean = block.sum() / block.size
            var = ((block - mean) ** 2).sum() / block.size
            for c in range(g * width, (g + 1) * width):
                y[rows.start : rows.stop, c] = (
                    gamma[c] * (x[rows.start : rows.stop, c] - mean) / np.sqrt(var + eps) + beta[c]
                )
    return y


def weighted_norm(x, mean, square, gamma, beta, alpha, groups, eps=1e-5):
    """Inference with example weighing, from moving averages of x and x²; x (N, C, positions)."""
    x, y = np.asarray(x, np.float64), np.empty(x.shape)
    width = x.shape[1] // groups
    for i in range(len(x)):
        for g in range(groups):
            channels = slice(g * width, (g + 1) * width)
            own = x[i, channels]
            mu = alpha * own.mean() + (1 - alpha) * mean[channels].mean()
            var = alpha * (own**2).mean() + (1 - alpha) * square[channels].mean() - mu**2
            y[i, channels] = gamma[channels, None] * (own - mu) / np.sqrt(var + eps) + beta[channels, None]
    return y


def moving_average(values, start, rate):
    for value in values:
        start = (1 - rate) * start + rate * value
    return start


@pytest.fixture(scope="session")
def reference():
    return SimpleNamespace(
        block_norm=block_norm,
        weighted_norm=weighted_norm,
        moving_average=moving_average,
        example_ranges=example_ranges,
    )


@pytest.fixture(params=[torch.contiguous_format, torch.channels_last], ids=["contiguous", "channels_last"])
def layout(request):
    return request.param
