import math

import numpy as np
import pytest
import torch

from equipoise.analysis import nonzero_share


def test_counts_every_value():
    x = np.array([[[0.0, -1.0], [1e-30, 0.0]], [[0.0, 0.0], [0.0, 5.0]], [[-0.0, 0.0], [0.0, 0.0]]])  # (3, 2, 2)
    assert nonzero_share(x) == pytest.approx(sum(v != 0 for v in x.flatten().tolist()) / 12)
    assert nonzero_share(x) == 0.25
    assert nonzero_share(np.zeros((2, 3))) == 0
    assert nonzero_share(np.ones((2, 3))) == 1


def test_relu_of_noise_and_kinds():
    x = torch.randn(50, 8, 4, 4).relu()
    share = nonzero_share(x)
    assert isinstance(share, torch.Tensor) and share.dtype == torch.float64
    assert share == (x > 0).double().mean()
    assert share == pytest.approx(0.5, abs=0.03)
    assert nonzero_share(x.bfloat16()) == share
    assert isinstance(nonzero_share(x.numpy()), float)


@pytest.mark.parametrize("bad", [[[math.nan, 0.0]], [[math.inf, 0.0]], np.zeros((0, 3)), [0.0, 1.0]])
def test_errors(bad):
    with pytest.raises(ValueError, match="activations"):
        nonzero_share(bad)
