"""Batch-group norm over pairs of examples and groups of channels, for any batch and any number of channels."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.norms import BatchGroupNorm2d
from equipoise.norms.kernels.groups import Block, fit_groups, grouped_norm


def test_by_hand():
    norm = BatchGroupNorm2d(2, groups=1)
    x = torch.tensor([[1.0, 3.0], [3.0, 5.0], [7.0, 9.0]])[:, :, None, None]
    # the pair has mean 3, variance 2; the example left over mean 8, variance 1
    expected = torch.tensor([[-2, 0], [0, 2], [-1, 1]]) / torch.tensor([[2.0], [2.0], [1.0]]).sqrt()
    torch.testing.assert_close(norm(x).flatten(1), expected, atol=1e-5, rtol=0)
    assert norm.running_mean.tolist() == pytest.approx([0.01 * 11 / 3, 0.01 * 17 / 3])  # by channel


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 7),
    examples=st.integers(1, 4),
    channels=st.integers(1, 12),
    groups=st.integers(1, 8),
    size=st.sampled_from([(1, 1), (2, 3)]),
    layout=st.sampled_from([torch.contiguous_format, torch.channels_last]),
)
def test_values(reference, n, examples, channels, groups, size, layout):
    norm = BatchGroupNorm2d(channels, groups, examples)
    with torch.no_grad():
        norm.weight.uniform_(0.5, 1.5)
        norm.bias.normal_()
    x = (torch.randn(n, channels, *size) * 2 + 1).contiguous(memory_format=layout)
    arrays = [t.detach().double().numpy() for t in (x.flatten(2), norm.weight, norm.bias)]
    used = max(g for g in range(1, groups + 1) if channels % g == 0)
    if x.numel() == used:
        with pytest.raises(ValueError, match="more than 1 value per channel"):
            norm(x)
        return
    np.testing.assert_allclose(
        norm(x).detach().flatten(2), reference.block_norm(*arrays, examples, used), atol=3e-4, rtol=3e-4
    )


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(("n", "size"), [(4, (2, 2)), (3, (2, 1)), (3, (1, 1)), (1, (2, 2))])
def test_gradients(layout, n, size):
    x = torch.randn(n, 4, *size, dtype=torch.float64).contiguous(memory_format=layout).requires_grad_()
    weight, bias = (torch.randn(4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(lambda *a: grouped_norm(*a, Block(2, 2), 1e-5)[0], (x, weight, bias))


def test_channels_that_differ_much_in_mean():
    """The moving averages are kept by channel, and must not inherit the rounding of the group's mean."""
    norm = BatchGroupNorm2d(2, groups=1, decay=0.0)
    x = torch.randn(8, 2, 6, 6) + torch.tensor([1e4, -1e4])[:, None, None]
    norm(x)
    torch.testing.assert_close(norm.moving()[1].double(), x.double().var((0, 2, 3), correction=0), rtol=1e-3, atol=0)


def test_inference_averages_the_moving_statistics_over_the_channel_group(reference):
    norm = BatchGroupNorm2d(4, groups=2).eval()
    norm.running_mean.copy_(torch.tensor([1.0, 3.0, -1.0, 0.0]))
    norm.running_square.copy_(torch.tensor([2.0, 12.0, 3.0, 1.0]))
    x = torch.randn(3, 4, 2, 2)
    arrays = [t.detach().double().numpy() for t in (norm.running_mean, norm.running_square, norm.weight, norm.bias)]
    expected = reference.weighted_norm(x.flatten(2).double().numpy(), *arrays, alpha=0.0, groups=2)
    np.testing.assert_allclose(norm(x).detach().flatten(2), expected, atol=1e-5)


def test_half_precision_and_groups():
    x = torch.randn(4, 8, 3, 3).bfloat16()
    y = BatchGroupNorm2d(8, 4)(x)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), BatchGroupNorm2d(8, 4)(x.float()), atol=2e-2, rtol=1e-2)
    assert [fit_groups(c, 32) for c in (16, 48, 64, 37)] == [16, 24, 32, 1]
    with pytest.raises(ValueError, match="examples must be a whole number"):
        BatchGroupNorm2d(4, examples=0)
