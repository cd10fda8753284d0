"""Virtual steps, meta-weight-net and domain adaptation against finite differences."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from equipoise.data import load_task
from equipoise.models import create_model
from equipoise.train import Recipe, Run
from equipoise.train.procedures import meta_weights, weight_corrections
from equipoise.train.procedures._meta import logits_with, virtual_step

CPU = torch.device("cpu")
TASK = {"name": "digits", "imbalance": "long_tailed", "ratio": 20}
COUNTS = np.array([110, 78, 56, 40, 29, 20, 14, 10, 7, 5])


class Regression:
    """Softmax regression in numpy: the loss on meta images after a step on weighed training images."""

    def __init__(self, cross_entropies):
        self.cross_entropies = cross_entropies
        rng = np.random.default_rng(0)
        self.w = rng.normal(size=(3, 4))
        self.x, self.y = rng.normal(size=(5, 4)), rng.integers(3, size=5)
        self.meta_x, self.meta_y = rng.normal(size=(6, 4)), rng.integers(3, size=6)
        self.network = nn.Linear(4, 3, bias=False).double()
        self.network.weight.data = torch.tensor(self.w)

    def ahead(self, weights, lr=0.7):
        p = np.exp(self.x @ self.w.T)
        p /= p.sum(1, keepdims=True)
        return self.w - lr * (weights[:, None] * (p - np.eye(3)[self.y])).T @ self.x

    def meta_loss(self, weights):
        return self.cross_entropies(self.meta_x @ self.ahead(weights).T, self.meta_y).mean()

    @property
    def losses(self):
        logits = self.network(torch.tensor(self.x))
        return torch.nn.functional.cross_entropy(logits, torch.tensor(self.y), reduction="none")

    def torch_meta_loss(self, parameters):
        logits = logits_with(self.network, parameters, torch.tensor(self.meta_x))
        return torch.nn.functional.cross_entropy(logits, torch.tensor(self.meta_y))


@pytest.fixture
def problem(cross_entropies):
    return Regression(cross_entropies)


def central_differences(function, at, h=1e-6):
    return np.array([(function(at + h * e) - function(at - h * e)) / (2 * h) for e in np.eye(len(at))])


def test_a_virtual_step_is_one_of_gradient_descent(problem):
    weights = np.array([0.5, 1.0, 2.0, 0.1, 3.0])
    ahead = virtual_step(problem.network, (torch.tensor(weights) * problem.losses).sum(), 0.7)
    np.testing.assert_allclose(ahead["weight"].detach(), problem.ahead(weights), rtol=1e-12)
    assert problem.network.weight.grad is None
    np.testing.assert_allclose(problem.network.weight.detach(), problem.w)


def test_weight_corrections_against_finite_differences(problem):
    weights = np.array([0.5, 1.0, 2.0, 0.1, 3.0])
    eps = weight_corrections(problem.network, problem.losses, torch.tensor(weights), problem.torch_meta_loss, 0.7, 0.01)
    expected = -0.01 * central_differences(problem.meta_loss, weights)
    np.testing.assert_allclose(eps, expected, rtol=1e-6, atol=1e-10)


def test_the_gradient_of_the_weight_net_against_finite_differences(problem):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(1, 3), nn.ReLU(), nn.Linear(3, 1), nn.Sigmoid()).double()
    losses = problem.losses.detach().numpy()

    def weights_by(parameters):
        a, b, c, d = parameters[:3], parameters[3:6], parameters[6:9], parameters[9]
        v = 1 / (1 + np.exp(-(np.maximum(losses[:, None] * a + b, 0) @ c + d)))
        return v / v.sum()

    flat = nn.utils.parameters_to_vector(net.parameters()).detach().numpy()
    np.testing.assert_allclose(meta_weights(net, problem.losses).detach(), weights_by(flat), rtol=1e-12)
    ahead = virtual_step(problem.network, (meta_weights(net, problem.losses) * problem.losses).sum(), 0.7)
    gradients = torch.autograd.grad(problem.torch_meta_loss(ahead), list(net.parameters()))
    expected = central_differences(lambda p: problem.meta_loss(weights_by(p)), flat)
    np.testing.assert_allclose(nn.utils.parameters_to_vector(gradients), expected, rtol=1e-5, atol=1e-9)


def test_weight_corrections_through_a_network_with_norms():
    """Reference: for each sample's weight, a copy of the network takes the step, and the meta loss is read."""
    torch.manual_seed(0)
    network = create_model("cnn_small(width=2)", 3, in_channels=1).double().train()
    x, y, meta_x, meta_y = (
        torch.rand(4, 1, 8, 8).double(),
        torch.tensor([0, 1, 2, 0]),
        torch.rand(3, 1, 8, 8).double(),
        torch.tensor([0, 1, 2]),
    )
    ce = torch.nn.functional.cross_entropy
    buffers = [b.clone() for b in network.buffers()]

    def meta_after(weights):
        trial = copy.deepcopy(network)
        (torch.tensor(weights) * ce(trial(x), y, reduction="none")).sum().backward()
        with torch.no_grad():
            for p in trial.parameters():
                p -= 0.05 * p.grad
        return ce(trial(meta_x), meta_y).item()

    expected = -0.01 * central_differences(meta_after, np.ones(4), h=1e-5)
    pristine = copy.deepcopy(network)
    loss = ce(network(x), y, reduction="none")
    seen = [b.clone() for b in network.buffers()]
    eps = weight_corrections(
        network, loss, torch.ones(4).double(), lambda p: ce(logits_with(network, p, meta_x), meta_y), 0.05
    )
    np.testing.assert_allclose(eps, expected, rtol=1e-4, atol=1e-8)
    assert all(map(torch.equal, network.buffers(), seen)) and not all(map(torch.equal, seen, buffers))
    ((1 + eps) * loss).mean().backward()  # the graph of the first pass is still there
    ((1 + eps) * ce(pristine(x), y, reduction="none")).mean().backward()
    for a, b in zip(network.parameters(), pristine.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)


def test_domain_adaptation_adds_to_the_class_weights(make_run, first_batch, cross_entropies):
    run = make_run("domain_adaptation(start=0, step_size=10)", weighting="effective_number(beta=0.9)")
    run.procedure.start_epoch(run, 0)
    run.network.train()
    batch, twin = first_batch(run), copy.deepcopy(run.network)
    terms = run.procedure(run, batch)
    effective = (1 - 0.9 ** COUNTS.astype(float)) / (1 - 0.9)
    class_weights = (1 / effective) / (1 / effective).sum() * 10
    losses = cross_entropies(twin(batch.inputs).detach(), batch.target.numpy())
    eps = terms.per_sample.detach().numpy() / losses - class_weights[batch.target.numpy()]
    assert terms.total.item() == pytest.approx(terms.per_sample.mean().item(), rel=1e-6)
    assert 1e-3 < np.abs(eps).max() < 1e3 and eps.min() < 0 < eps.max()


def test_meta_weight_net_step(make_run, first_batch, cross_entropies):
    run = make_run("meta_weight_net(lr=0.1)", momentum=0.8, weight_decay=0.01, penalty="logit_penalty(beta=0.1)")
    run.network.train()
    batch, twin = first_batch(run), copy.deepcopy(run.network)
    terms = run.procedure(run, batch)
    logits = twin(batch.inputs).detach()
    losses = cross_entropies(logits, batch.target.numpy())
    with torch.no_grad():
        v = run.procedure.weight_net(torch.tensor(losses)[:, None].float()).squeeze(1).double().numpy()
    expected = (v / v.sum() * losses).sum()
    np.testing.assert_allclose(terms.per_sample.detach(), 32 * v / v.sum() * losses, rtol=1e-4)
    penalty = run.objective.penalty(run.network.output(batch.inputs)._replace(logits=logits), batch)
    assert terms.total.item() == pytest.approx(expected + penalty.item(), rel=1e-4)


@pytest.mark.parametrize("nesterov", [False, True])
def test_the_weight_net_descends_as_sgd_does(nesterov, make_run):
    run = make_run("meta_weight_net(lr=0.1)", momentum=0.8, weight_decay=0.01, nesterov=nesterov)
    twin = copy.deepcopy(run.procedure.weight_net)
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.1, momentum=0.8, weight_decay=0.01, nesterov=nesterov)
    x = torch.rand(8, 1)
    for _ in range(3):
        run.procedure._descend(run, run.procedure.weight_net(x).square().mean())
        optimizer.zero_grad()
        twin(x).square().mean().backward()
        optimizer.step()
    for ours, theirs in zip(run.procedure.weight_net.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("procedure", ["meta_weight_net", "domain_adaptation(start=0)"])
@pytest.mark.parametrize("valid", [0.1, 0.0])
def test_meta_images_are_balanced_and_held_out_where_possible(procedure, valid):
    recipe = Recipe.make({"procedure": procedure, "model": "cnn_small(width=4)", "epochs": 1}, {**TASK, "valid": valid})
    run = Run(recipe, load_task(**recipe.task.__dict__), CPU)
    pool = run.procedure.meta
    assert pool.split is (run.task.valid if valid else run.task.train)
    _, target = pool.indices(10_000, run.streams["mix"])
    np.testing.assert_allclose(np.bincount(target, minlength=10) / 10_000, 0.1, atol=0.02)
    run.epoch(0)
