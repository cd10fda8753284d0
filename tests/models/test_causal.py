import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from equipoise.models import CausalHead, causal_logits


def length(v):
    return np.sqrt((v**2).sum())


def reference(x, w, mean, heads, tau, gamma, alpha):
    """Float64, one head of one pair at a time; mean None is training. Zero vectors have no direction."""
    logits = np.zeros((len(x), len(w)))
    part = x.shape[1] // heads
    for i in range(len(x)):
        for k in range(len(w)):
            for h in range(heads):
                cut = slice(h * part, (h + 1) * part)
                xh, wh = x[i, cut], w[k, cut]
                direct = xh / length(xh) if length(xh) else xh
                if mean is not None and length(mean[cut]):
                    mh = mean[cut] / length(mean[cut])
                    direct = direct - alpha * (direct @ mh) * mh
                logits[i, k] += tau / heads * direct @ wh / (length(wh) + gamma)
    return logits


@pytest.mark.parametrize("heads", [1, 2, 4])
@pytest.mark.parametrize("alpha", [0.0, 1.0, 3.0])
def test_matches_the_reference(heads, alpha):
    x, w = torch.randn(5, 8, dtype=torch.float64), torch.randn(3, 8, dtype=torch.float64)
    mean = torch.randn(8, dtype=torch.float64)
    for m in (None, mean):
        logits = causal_logits(x, w, m, heads, 16.0, 1 / 32, alpha)
        expected = reference(x.numpy(), w.numpy(), None if m is None else m.numpy(), heads, 16.0, 1 / 32, alpha)
        np.testing.assert_allclose(logits.numpy(), expected, rtol=1e-10, atol=1e-12)


def test_by_hand():
    # one head, x̂ = (0.6, 0.8), mean direction (0, 1), alpha 0.5: (0.6, 0.8 - 0.5·0.8) = (0.6, 0.4);
    # w = (3, 0) -> 3/(3 + 1) = 0.75, w = (0, 1) -> 1/2; tau 10: 10·0.6·0.75 = 4.5 and 10·0.4·0.5 = 2
    x, w, mean = torch.tensor([[3.0, 4.0]]), torch.tensor([[3.0, 0.0], [0.0, 1.0]]), torch.tensor([0.0, 9.0])
    torch.testing.assert_close(causal_logits(x, w, mean, 1, 10.0, 1.0, 0.5), torch.tensor([[4.5, 2.0]]))


def test_the_moving_mean_has_the_direction_of_the_released_recursion():
    head, batches = CausalHead(6, 3, momentum=0.8), torch.randn(5, 4, 6) + 1
    running = np.zeros(6)
    for batch in batches:
        head(batch)
        running = 0.8 * running + batch.double().numpy().mean(0)
    mean = head.feature_mean.double().numpy()
    np.testing.assert_allclose(mean, 0.2 * running, rtol=1e-5)


def test_training_does_not_remove_and_evaluation_does():
    head, x = CausalHead(8, 3, alpha=1.5), torch.randn(6, 8) + 2
    w = head.weight.detach().double().numpy()
    trained = head(x)
    np.testing.assert_allclose(
        trained.detach().numpy(), reference(x.double().numpy(), w, None, 2, 16, 1 / 32, 1.5), rtol=1e-4, atol=1e-5
    )
    mean = head.feature_mean.clone()
    tested = head.eval()(x)
    np.testing.assert_allclose(
        tested.detach().numpy(),
        reference(x.double().numpy(), w, mean.double().numpy(), 2, 16, 1 / 32, 1.5),
        rtol=1e-4,
        atol=1e-5,
    )
    assert torch.equal(head.feature_mean, mean) and not torch.allclose(trained, tested)


def test_with_alpha_one_the_mean_direction_has_no_effect():
    head = CausalHead(4, 3, heads=1).eval()
    head.feature_mean.copy_(torch.tensor([1.0, 0, 0, 0]))
    torch.testing.assert_close(head(torch.tensor([[5.0, 0, 0, 0]])), torch.zeros(1, 3))


def test_before_training_nothing_is_removed():
    head, x = CausalHead(8, 3).eval(), torch.randn(2, 8)
    torch.testing.assert_close(head(x), causal_logits(x, head.weight))


def test_the_mean_is_saved_and_reset():
    head = CausalHead(4, 2)
    head(torch.ones(3, 4))
    other = CausalHead(4, 2)
    other.load_state_dict(head.state_dict())
    torch.testing.assert_close(other.feature_mean, torch.full((4,), 0.1))
    other.reset_parameters()
    assert torch.equal(other.feature_mean, torch.zeros(4))


def test_gradients():
    x, w = (
        torch.randn(3, 6, dtype=torch.float64, requires_grad=True),
        torch.randn(2, 6, dtype=torch.float64, requires_grad=True),
    )
    mean = torch.randn(6, dtype=torch.float64)
    assert gradcheck(lambda x, w: causal_logits(x, w), (x, w))
    assert gradcheck(lambda x, w: causal_logits(x, w, mean, alpha=1.5), (x, w))
    head = CausalHead(6, 2).double()
    head(x).sum().backward()
    assert not head.feature_mean.requires_grad


def test_zero_vectors():
    head = CausalHead(4, 3)
    head.weight.data[0] = 0
    x = torch.zeros(2, 4, requires_grad=True)
    for mode in (True, False):
        logits = head.train(mode)(x)
        assert torch.equal(logits, torch.zeros(2, 3))
        logits.sum().backward()
    assert all(bool(torch.isfinite(g).all()) and g.abs().max() < 1000 for g in (x.grad, head.weight.grad))


@pytest.mark.parametrize("scale", [1e-12, 1e4, 1e12])
def test_extreme_features(scale):
    head, x = CausalHead(8, 3), torch.randn(3, 8) * scale
    head(x)
    mean = head.feature_mean.double().numpy()
    expected = reference(x.double().numpy(), head.weight.detach().double().numpy(), mean, 2, 16.0, 1 / 32, 1.0)
    np.testing.assert_allclose(head.eval()(x).detach().numpy(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.usefixtures("bf16")
def test_half_precision_is_computed_in_float32():
    x = torch.randn(8, 16).bfloat16()
    head = CausalHead(16, 4)
    with torch.autocast("cpu", torch.bfloat16):
        logits = head(x)
    torch.testing.assert_close(logits, causal_logits(x.float(), head.weight), rtol=0, atol=0)
    assert head.feature_mean.dtype == torch.float32
    assert head.bfloat16()(x).dtype == torch.float32


def test_batch_of_one():
    head, x = CausalHead(4, 3), torch.randn(6, 4)
    head(x)
    head.eval()
    torch.testing.assert_close(head(x[:1]), head(x)[:1])


@pytest.mark.parametrize(
    "arguments",
    [{"heads": 3}, {"heads": 0}, {"tau": 0}, {"gamma": 0}, {"alpha": -1}, {"momentum": 1.0}, {"momentum": -0.1}],
)
def test_refuses(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        CausalHead(4, 3, **arguments)
