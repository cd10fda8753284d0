import numpy as np
import pytest
import torch

from equipoise.losses import EqualizationLoss, equalization_loss

either_way = pytest.mark.usefixtures("either_way")
COUNTS = [500, 120, 33, 7, 0]  # shares 0.758, 0.182, 0.05, 0.0106, 0


@pytest.mark.parametrize("threshold", [0.0, 0.005, 0.02, 0.5])
def test_reference_where_every_rare_class_is_left_out(agrees_with, threshold):
    rare = np.array(COUNTS) / sum(COUNTS) < threshold

    def reference(z, y):
        weights = 1 - rare * (np.arange(len(z)) != y)
        return np.log((weights * np.exp(z)).sum()) - z[y]

    agrees_with(EqualizationLoss(COUNTS, gamma=1.0, threshold=threshold), reference)


def test_by_hand():
    # of the logits 0, 1, 5 the rare last one is left out: log(e^0 + e^1) - 0 = 1.313262
    rare = torch.tensor([False, False, True])
    value = equalization_loss(torch.tensor([[0.0, 1.0, 5.0]]), torch.tensor([0]), rare, gamma=1.0)
    assert value.item() == pytest.approx(1.313262, abs=1e-6)


def test_left_out_logits_get_no_gradient_but_the_label_always_does():
    logits = torch.randn(2, 5, requires_grad=True)
    EqualizationLoss(COUNTS, gamma=1.0, threshold=0.02)(logits, torch.tensor([0, 4])).backward()
    assert logits.grad[0, 3:].tolist() == [0.0, 0.0]
    assert logits.grad[1, 3] == 0
    assert logits.grad[1, 4] < 0


def test_a_rare_class_is_left_out_as_often_as_gamma_says():
    loss = EqualizationLoss([99, 1], gamma=0.9, threshold=0.05, reduction="none")
    loss.generator = torch.Generator().manual_seed(0)
    values = loss(torch.zeros(20000, 2), torch.zeros(20000, dtype=torch.long))
    # left out: -log(1) = 0, kept: log 2; the share of 20000 draws has a standard deviation of 0.002
    assert (values == 0).double().mean().item() == pytest.approx(0.9, abs=0.01)


def draws(gamma, n, c, repeats=1, seed=0):
    """(repeats, N, C) of bools: whether each class was left out, seen by its logit having no slope."""
    loss = EqualizationLoss([10**6] + [1] * c, gamma=gamma)
    loss.generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(repeats):
        logits = torch.zeros(n, c + 1, requires_grad=True)
        loss(logits, torch.zeros(n, dtype=torch.long)).backward()
        found.append(logits.grad[:, 1:] == 0)
    return torch.stack(found)


@either_way
@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9, 1.0])
def test_the_draw_meets_gamma_for_each_class(gamma):
    left_out = draws(gamma, 1000, 200, repeats=40).double().mean((0, 1))
    assert (left_out - gamma).abs().max() <= 5 * (gamma * (1 - gamma) / 40_000) ** 0.5


@either_way
def test_draws_are_independent():
    # with 0.5 taken away a product of two has mean 0 and standard deviation 1/4
    left_out = draws(0.5, 1000, 200, repeats=40).double() - 0.5
    noise = 5 / 40_000**0.5 / 4
    for classes_apart in (1, 2, 7, 100):
        assert (left_out * left_out.roll(classes_apart, 2)).mean((0, 1)).abs().max() < noise
    for samples_apart in (1, 2, 500):
        assert (left_out * left_out.roll(samples_apart, 1)).mean((0, 1)).abs().max() < noise
    # how many classes are left out of a sample's sum varies as it should
    assert left_out.sum(2).var().item() == pytest.approx(200 / 4, rel=0.05)


@either_way
def test_draws_change_from_call_to_call_and_repeat_with_the_seed():
    first, second = draws(0.5, 1000, 200, repeats=2)
    assert (first != second).double().mean().item() == pytest.approx(0.5, abs=0.02)
    assert torch.equal(draws(0.5, 1000, 200)[0], first)
    assert not torch.equal(draws(0.5, 1000, 200, seed=1)[0], first)


@either_way
def test_the_second_derivative_is_that_of_the_same_draw():
    loss = EqualizationLoss([99, 1, 1, 1], gamma=0.5, threshold=0.05, reduction="sum")
    logits, target = torch.randn(50, 4, requires_grad=True), torch.zeros(50, dtype=torch.long)
    value = loss(logits, target)
    (plain,) = torch.autograd.grad(value, logits, retain_graph=True)
    (with_graph,) = torch.autograd.grad(value, logits, create_graph=True)
    torch.testing.assert_close(with_graph.detach(), plain)
    assert 30 < (plain == 0).sum() < 120


def test_the_generator_decides_the_draw():
    loss = EqualizationLoss([99, 1], gamma=0.5, threshold=0.05, reduction="none")
    logits, target = torch.zeros(100, 2), torch.zeros(100, dtype=torch.long)

    def draw(seed):
        loss.generator = torch.Generator().manual_seed(seed)
        return loss(logits, target)

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))


def test_without_a_generator_the_global_one_decides():
    loss = EqualizationLoss([99, 1], gamma=0.5, threshold=0.05, reduction="none")
    logits, target = torch.zeros(100, 2), torch.zeros(100, dtype=torch.long)
    torch.manual_seed(3)
    first = loss(logits, target)
    second = loss(logits, target)
    torch.manual_seed(3)
    assert torch.equal(first, loss(logits, target))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("parameters", [{"gamma": 1.1}, {"gamma": -0.1}, {"threshold": 2}])
def test_refuses(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        EqualizationLoss(COUNTS, **parameters)
