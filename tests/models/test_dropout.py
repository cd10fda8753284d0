import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from equipoise.models import DropoutHead


def test_training_matches_the_reference():
    head = DropoutHead(6, 3, keep=0.4).double()
    head.generator = torch.Generator().manual_seed(11)
    x = torch.randn(5, 6, dtype=torch.float64)
    logits = head(x).detach().numpy()
    mask = (torch.rand(5, 6, generator=torch.Generator().manual_seed(11)) < 0.4).numpy()
    expected = np.zeros((5, 3))
    for i in range(5):
        for k in range(3):
            expected[i, k] = head.bias[k].item()
            for j in range(6):
                if mask[i, j]:
                    expected[i, k] += head.weight[k, j].item() * x[i, j].item() / 0.4
    assert 0 < mask.sum() < mask.size
    np.testing.assert_allclose(logits, expected, rtol=1e-10)


def test_keep_is_the_probability_to_keep():
    head = DropoutHead(2000, 1, keep=0.8)
    head.weight.data.fill_(1.0)
    head.bias.data.zero_()
    # each row is 1/0.8 times the number of kept features: 2000 on average, deviation 2000·√(0.2/0.8/2000) = 22
    sums = head(torch.ones(50, 2000))
    assert sums.mean().item() == pytest.approx(2000, abs=4 * 22 / 50**0.5)
    assert 5 < sums.std().item() < 50


def test_evaluation_and_keep_one_are_linear():
    x = torch.randn(4, 6)
    head = DropoutHead(6, 3, keep=0.5).eval()
    torch.testing.assert_close(head(x), x @ head.weight.T + head.bias)
    head = DropoutHead(6, 3, keep=1.0)
    torch.testing.assert_close(head(x), x @ head.weight.T + head.bias)


def test_the_generator_is_the_only_source():
    head, x = DropoutHead(64, 3), torch.randn(4, 64)
    head.generator = torch.Generator().manual_seed(1)
    before = torch.get_rng_state()
    first = head(x)
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(head(x), first)
    head.generator.manual_seed(1)
    assert torch.equal(head(x), first)


def test_without_a_generator_the_global_one_is_used():
    head, x = DropoutHead(64, 3), torch.randn(4, 64)
    torch.manual_seed(3)
    first = head(x)
    torch.manual_seed(3)
    assert torch.equal(head(x), first)


def test_gradients():
    head = DropoutHead(5, 2, keep=0.6).double()

    def logits(x):
        head.generator = torch.Generator().manual_seed(0)
        return head(x)

    assert gradcheck(logits, torch.randn(3, 5, dtype=torch.float64, requires_grad=True))


@pytest.mark.parametrize("scale", [0.0, 1e4])
@pytest.mark.usefixtures("bf16")
def test_extreme_features_and_bf16(scale):
    head, x = DropoutHead(8, 3), torch.full((1, 8), scale)
    assert bool(torch.isfinite(head(x)).all())
    with torch.autocast("cpu", torch.bfloat16):
        assert bool(torch.isfinite(head(x.bfloat16())).all())
    assert head.bfloat16()(x.bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize("keep", [0, -0.1, 1.1, float("nan"), True])
def test_refuses(keep):
    with pytest.raises(ValueError, match="keep"):
        DropoutHead(4, 3, keep=keep)


def test_the_bias_may_start_at_the_prior_of_a_class():
    head = DropoutHead(6, 5, keep=0.8, prior="classes")
    np.testing.assert_allclose(head.bias.detach(), np.full(5, -np.log(5)), rtol=1e-6)
    assert head.no_decay == ("bias",) and DropoutHead(6, 5).no_decay == ()
