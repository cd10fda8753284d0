import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from equipoise.models import CosineHead, cosine_logits


def reference(x, w, b, tau, normalize_features=True):
    """Float64, one pair at a time; a zero vector has cosine 0 with everything."""
    logits = np.zeros((len(x), len(w)))
    for i, row in enumerate(x):
        for k, wk in enumerate(w):
            lengths = np.sqrt((wk**2).sum()) * (np.sqrt((row**2).sum()) if normalize_features else 1.0)
            logits[i, k] = (row @ wk / lengths if lengths > 0 else 0.0) / tau + (0.0 if b is None else b[k])
    return logits


@pytest.mark.parametrize("tau", [0.05, 1.0, 3.0])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("normalize_features", [True, False])
def test_matches_the_reference(tau, bias, normalize_features):
    head = CosineHead(6, 4, tau, bias, normalize_features).double()
    if bias:
        torch.nn.init.normal_(head.bias)
    x = torch.randn(5, 6, dtype=torch.float64)
    b = head.bias.detach().numpy() if bias else None
    expected = reference(x.numpy(), head.weight.detach().numpy(), b, tau, normalize_features)
    np.testing.assert_allclose(head(x).detach().numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize("normalize_features", [True, False])
def test_features_are_dropped_while_training(normalize_features):
    head = CosineHead(6, 4, 0.1, normalize_features=normalize_features, keep=0.6).double()
    head.generator = torch.Generator().manual_seed(5)
    x = torch.randn(5, 6, dtype=torch.float64)
    mask = (torch.rand(5, 6, generator=torch.Generator().manual_seed(5)) < 0.6).numpy()
    weight, bias = head.weight.detach().numpy(), head.bias.detach().numpy()
    assert 0 < mask.sum() < mask.size
    expected = reference(x.numpy() * mask / 0.6, weight, bias, 0.1, normalize_features)
    np.testing.assert_allclose(head(x).detach().numpy(), expected, rtol=1e-10)
    whole = reference(x.numpy(), weight, bias, 0.1, normalize_features)
    np.testing.assert_allclose(head.eval()(x).detach().numpy(), whole, rtol=1e-10)


@pytest.mark.parametrize(("prior", "start"), [("classes", np.log(5)), ("others", np.log(4))])
def test_the_bias_may_start_at_the_prior_of_a_class(prior, start):
    head = CosineHead(6, 5, prior=prior)
    np.testing.assert_allclose(head.bias.detach(), np.full(5, -start), rtol=1e-6)
    assert head.no_decay == ("bias",)
    with pytest.raises(ValueError, match="with bias=False there is none"):
        CosineHead(6, 5, bias=False, prior=prior)


def test_by_hand():
    # cos((3, 4), (1, 0)) = 3/5 and cos((3, 4), (0, 2)) = 4/5; over tau = 0.5 and plus b = (1, -1): 2.2 and 0.6
    logits = cosine_logits(
        torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([1.0, -1.0]), tau=0.5
    )
    torch.testing.assert_close(logits, torch.tensor([[2.2, 0.6]]))


def test_only_directions_count():
    head, x = CosineHead(8, 3, bias=False), torch.randn(4, 8)
    before = head(x)
    head.weight.data *= torch.tensor([[0.01], [1.0], [500.0]])
    torch.testing.assert_close(head(x * 37), before)


def test_gradients():
    x, w, b = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((3, 4), (5, 4), (5,)))
    assert gradcheck(lambda *args: cosine_logits(*args, tau=0.3), (x, w, b))
    assert gradcheck(lambda *args: cosine_logits(*args, tau=0.3, normalize_features=False), (x, w, b))


def test_zero_vectors_give_zero_and_gentle_gradients():
    head = CosineHead(4, 3, tau=1.0)
    head.weight.data[1] = 0
    x = torch.stack([torch.zeros(4), torch.ones(4)]).requires_grad_()
    logits = head(x)
    assert torch.equal(logits[0], torch.zeros(3)) and logits[1, 1] == 0
    logits.sum().backward()
    assert bool(torch.isfinite(x.grad).all()) and bool(torch.isfinite(head.weight.grad).all())
    assert x.grad.abs().max() < 10 and head.weight.grad.abs().max() < 10


@pytest.mark.parametrize("scale", [1e-12, 1e4, 1e12])
def test_extreme_features(scale):
    head = CosineHead(16, 5, bias=False)
    x = (torch.randn(3, 16) * scale).requires_grad_()
    logits = head(x)
    expected = reference(x.detach().double().numpy(), head.weight.detach().double().numpy(), None, 0.05)
    np.testing.assert_allclose(logits.detach().numpy(), expected, rtol=1e-4, atol=1e-4)
    logits.logsumexp(1).sum().backward()
    assert bool(torch.isfinite(x.grad).all())


@pytest.mark.usefixtures("bf16")
def test_half_precision_is_computed_in_float32():
    head, x = CosineHead(64, 10), torch.randn(8, 64).bfloat16()
    exact = head(x.float())
    torch.testing.assert_close(head(x), exact, rtol=0, atol=0)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(head(x), exact)
    assert head.bfloat16()(x).dtype == torch.float32


def test_start():
    torch.manual_seed(2)
    head = CosineHead(32, 7)
    torch.testing.assert_close(head.weight.norm(dim=1), torch.ones(7))
    assert torch.equal(head.bias, torch.zeros(7)) and head.no_decay == ()
    torch.manual_seed(2)
    assert torch.equal(CosineHead(32, 7).weight, head.weight)


def test_batch_of_one():
    head, x = CosineHead(4, 3).eval(), torch.randn(6, 4)
    torch.testing.assert_close(head(x[:1]), head(x)[:1])


@pytest.mark.parametrize(
    "arguments",
    [{"tau": 0}, {"tau": -1.0}, {"in_features": 0}, {"num_classes": 0}, {"keep": 0.0}, {"keep": 1.5}, {"prior": "x"}],
)
def test_refuses(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        CosineHead(**{"in_features": 4, "num_classes": 3, **arguments})
