import numpy as np
import pytest
import torch

from equipoise.analysis.representations._rows import mean_row, rows_of


def test_rows_that_are_alike_have_that_row_as_mean():
    row = torch.randn(50, dtype=torch.float64)
    x = row.repeat(1000, 1)
    assert torch.equal(mean_row(x), row)
    assert not torch.equal(x.double().sum(dim=0) / 1000, row)  # what it is there for


def test_mean_of_large_and_small():
    x = np.random.default_rng(0).standard_normal((300, 4)) + [0, 1e3, -1e6, 1e9]
    np.testing.assert_allclose(mean_row(torch.tensor(x)), x.mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_no_place_hides_what_is_not_finite(value, dtype):
    for place in range(37):
        x = torch.randn(37, 1).to(dtype)
        assert rows_of(x) is not None
        x[place] = value
        with pytest.raises(ValueError, match="activations are not finite in 1 of 37 rows"):
            rows_of(x, "activations")


def test_whole_numbers_and_booleans_pass():
    assert rows_of(torch.ones(2, 3, 4, dtype=torch.int64)).shape == (2, 12)
    assert rows_of(torch.ones(2, 3, dtype=torch.bool)).shape == (2, 3)
