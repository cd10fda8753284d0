import math

import numpy as np
import pytest
import torch

from equipoise.models import LinearHead
from equipoise.models.heads.linear import prior_bias


def reference(x, w, b):
    return np.array(
        [[sum(wi * xi for wi, xi in zip(wk, row, strict=True)) + bk for wk, bk in zip(w, b, strict=True)] for row in x]
    )


@pytest.mark.parametrize("prior", [None, "others", "classes"])
def test_matches_the_formula(prior):
    head = LinearHead(5, 3, prior=prior).double()
    x = torch.randn(4, 5, dtype=torch.float64)
    expected = reference(x.numpy(), head.weight.detach().numpy(), head.bias.detach().numpy())
    np.testing.assert_allclose(head(x).detach().numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize(("prior", "others"), [("others", 9), ("classes", 10)])
def test_prior_bias(prior, others):
    head = LinearHead(4, 10, prior=prior)
    torch.testing.assert_close(head.bias.detach(), torch.full((10,), -math.log(others)))
    assert head.no_decay == ("bias",)
    head.bias.data.fill_(5.0)
    head.reset_parameters()
    torch.testing.assert_close(head.bias.detach(), torch.full((10,), -math.log(others)))


def test_others_starts_each_sigmoid_at_one_in_c():
    # sigmoid(-log 3) = 1 / (1 + 3) = 0.25 = 1/C for C = 4
    assert torch.sigmoid(torch.tensor(prior_bias(4, "others"))).item() == pytest.approx(0.25)


def test_no_prior_is_torchs_linear():
    torch.manual_seed(5)
    ours = LinearHead(6, 4)
    torch.manual_seed(5)
    torchs = torch.nn.Linear(6, 4)
    assert torch.equal(ours.weight, torchs.weight) and torch.equal(ours.bias, torchs.bias)
    assert ours.no_decay == () and isinstance(ours, torch.nn.Linear)


def test_the_prior_leaves_the_weights_alone():
    torch.manual_seed(5)
    plain = LinearHead(6, 4)
    torch.manual_seed(5)
    assert torch.equal(LinearHead(6, 4, prior="others").weight, plain.weight)


@pytest.mark.parametrize("arguments", [(4, 3, "uniform"), (4, 1, "others"), (0, 3), (4, 0)])
def test_refuses(arguments):
    with pytest.raises(ValueError, match=r"prior|num_classes|in_features"):
        LinearHead(*arguments)


def test_repr():
    assert repr(LinearHead(4, 3, prior="others")) == "LinearHead(in_features=4, num_classes=3, prior='others')"
