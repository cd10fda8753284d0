"""The arithmetic of the procedures against slow references in float64, written from the formulas."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from equipoise.core import Batch, EquipoiseError, Spec
from equipoise.data import Split, load_task
from equipoise.models import LinearHead, create_model
from equipoise.train import Recipe, Run
from equipoise.train.procedures import (
    branch_share,
    centroid_loss,
    meta_weights,
    reversed_shares,
    seed_probability,
    weight_corrections,
)
from equipoise.train.procedures._meta import logits_with, virtual_step
from equipoise.train.procedures._pool import Pool
from equipoise.train.procedures.bbn import TwoBranches, bilateral_map
from equipoise.train.procedures.m2m import translate
from equipoise.train.procedures.oltr import class_means

CPU = torch.device("cpu")
TASK = {"name": "digits", "imbalance": "long_tailed", "ratio": 20}
COUNTS = np.array([110, 78, 56, 40, 29, 20, 14, 10, 7, 5])


def make_run(procedure, **options):
    recipe = Recipe.make({"procedure": procedure, "model": "cnn_small(width=4)", "epochs": 4} | options, TASK)
    run = Run(recipe, load_task(**recipe.task.__dict__), CPU)
    run.order = run.sampler.order(run.streams["order"])
    run.lr.fill_(0.1)
    return run


def first_batch(run, n=32):
    index = run.order[:n]
    return Batch(run.inputs(run.task.train.images[index]), run.task.train.labels[index])


def cross_entropies(logits, target):
    z = np.asarray(logits, dtype=np.float64)
    z = z - z.max(1, keepdims=True)
    return np.log(np.exp(z).sum(1)) - z[np.arange(len(z)), target]


# -- further batches ---------------------------------------------------------------------------------------------------


def test_a_pool_draws_classes_by_their_shares_and_images_of_a_class_alike():
    labels = torch.tensor([3, 0, 0, 1, 1, 1, 1, 3])  # no image of class 2 or 4
    pool = Pool(Split(torch.zeros(8, 1, 1, 1, dtype=torch.uint8), labels), torch.tensor([0.1, 0.4, 5.0, 0.5, 9.0]))
    index, target = pool.indices(40_000, torch.Generator().manual_seed(0))
    assert torch.equal(labels[index], target)
    seen = np.bincount(index, minlength=8) / 40_000
    expected = np.array([0.5 / 2, 0.1 / 2, 0.1 / 2, *[0.4 / 4] * 4, 0.5 / 2])
    np.testing.assert_allclose(seen, expected, atol=5 * math.sqrt(0.25 / 40_000))
    again, _ = pool.indices(40_000, torch.Generator().manual_seed(0))
    other, _ = pool.indices(40_000, torch.Generator().manual_seed(1))
    assert torch.equal(index, again) and not torch.equal(index, other)


def test_a_further_batch_leaves_the_runs_own_stream_alone():
    run = make_run("bbn", augment="crop_flip(pad=1)")
    before = run.streams["augment"].get_state()
    batch = run.procedure.pool.draw(run, 7)
    assert batch.inputs.shape == (7, 1, 8, 8) and batch.target.shape == (7,)
    assert torch.equal(run.streams["augment"].get_state(), before)


# -- bbn ---------------------------------------------------------------------------------------------------------------


def test_bbn_schedule_and_shares():
    # at epoch 101 of 200, counted from 1: 1 - (100/200)^2
    assert branch_share(torch.tensor(100 / 200)) == 0.75
    steps = np.linspace(0, 1, 11)
    np.testing.assert_allclose(branch_share(torch.tensor(steps)), [1 - t * t for t in steps], rtol=1e-12)
    expected = (COUNTS.max() / COUNTS) / (COUNTS.max() / COUNTS).sum()
    np.testing.assert_allclose(reversed_shares(COUNTS), expected, rtol=1e-6)
    np.testing.assert_allclose(reversed_shares([0, 30, 10]), [0, 0.25, 0.75], rtol=1e-6)


@pytest.mark.parametrize("done", [0, 20, 43])
def test_bbn_minimises_its_formula(done):
    run = make_run("bbn", weighting="inverse_frequency")
    run.network.train()
    run.done.fill_(done)
    twin, stream = copy.deepcopy(run.network), run.streams["mix"].get_state()
    batch = first_batch(run)
    terms = run.procedure(run, batch)

    run.streams["mix"].set_state(stream)
    rare = run.procedure.pool.draw(run, 32)
    a = 1 - (done / len(run.rates)) ** 2
    features = []
    for x, branch in ((batch.inputs, twin.stage3.conventional), (rare.inputs, twin.stage3.rebalancing)):
        features.append(
            branch(twin.stage3.shared(twin.stage2(twin.stage1(twin.stem(x))))).mean((2, 3)).detach().double()
        )
    mixed = np.concatenate([2 * a * features[0], 2 * (1 - a) * features[1]], 1)
    logits = mixed @ twin.head.weight.detach().double().numpy().T + twin.head.bias.detach().double().numpy()
    weights = (1 / COUNTS) / (1 / COUNTS).sum() * 10
    y_c, y_r = batch.target.numpy(), rare.target.numpy()
    values = a * weights[y_c] * cross_entropies(logits, y_c) + (1 - a) * weights[y_r] * cross_entropies(logits, y_r)
    np.testing.assert_allclose(terms.per_sample.detach(), values, rtol=1e-4, atol=1e-5)
    assert terms.total.item() == pytest.approx(values.mean(), rel=1e-4)
    for a_buffer, b_buffer in zip(
        run.network.buffers(), twin.buffers(), strict=True
    ):  # each batch moved the norms once
        torch.testing.assert_close(a_buffer, b_buffer)


def test_bbn_at_test_time_is_plain_concatenation():
    network = make_run("bbn").network.eval()
    x = torch.rand(3, 1, 8, 8)
    shared = network.stage3.shared(network.stage2(network.stage1(network.stem(x))))
    branches = [branch(shared) for branch in (network.stage3.conventional, network.stage3.rebalancing)]
    assert not torch.allclose(*branches)  # the two start from different weights
    out = network.output(x)
    torch.testing.assert_close(out.features, torch.cat([b.mean((2, 3)) for b in branches], 1))
    torch.testing.assert_close(out.feature_map, bilateral_map(*branches, 0.5))
    torch.testing.assert_close(out.logits, network.head(out.features))


@pytest.mark.parametrize(
    ("model", "shared"),
    [("cnn_small", 0), ("resnet32", 4), ("wrn_16_8", 1), ("resnet18", 1), ("allcnnc", 1), ("resnet12", 0)],
)  # fmt: skip
def test_bbn_doubles_the_last_block_of_every_network(model, shared):
    with torch.device("meta"):
        network = create_model(model, 10)
    branches = TwoBranches(network.get_submodule(network.stages[-1]))
    assert len(branches.shared) == shared
    convs = [sum(isinstance(m, nn.Conv2d) for m in b.modules()) for b in (branches.conventional, branches.rebalancing)]
    assert convs[0] == convs[1] > 0


def test_bbn_refuses_a_network_that_norms_its_features():
    bbn, network = Spec("bbn").build("procedure", class_counts=[3, 2]), create_model("densenet(depth=7, growth=2)", 2)
    with pytest.raises(EquipoiseError, match="those of DenseNet are not; choose another network"):
        bbn.adapt(network, LinearHead)


# -- m2m ---------------------------------------------------------------------------------------------------------------


def test_seed_probability_against_the_formula():
    seed, own = np.meshgrid(COUNTS, COUNTS)
    expected = [[1 - 0.99 ** max(s - o, 0) for s, o in zip(*rows, strict=True)] for rows in zip(seed, own, strict=True)]
    ours = seed_probability(torch.tensor(seed).float(), torch.tensor(own).float(), 0.99)
    np.testing.assert_allclose(ours, expected, atol=1e-6)
    assert torch.equal(seed_probability(torch.tensor([5.0, 4.0]), torch.tensor(4.0), 0.0), torch.tensor([1.0, 0.0]))
    assert torch.equal(seed_probability(torch.tensor([5.0, 4.0]), torch.tensor(4.0), 1.0), torch.tensor([0.0, 0.0]))


def test_translation_against_a_loop_over_images():
    """Linear f and g: gradients by hand, g: W^T (softmax - onehot), f: V[seed]."""
    rng = np.random.default_rng(0)
    w, v, x = rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), rng.random((5, 4))
    target, seed = np.array([0, 1, 2, 0, 1]), np.array([1, 2, 0, 2, 0])
    ours = translate(
        torch.tensor(x).view(5, 1, 2, 2), torch.tensor(target), torch.tensor(seed),
        lambda p: p.flatten(1) @ torch.tensor(w).T, lambda p: p.flatten(1) @ torch.tensor(v).T, 0.5, 0.1, 10,
    )  # fmt: skip
    for n in range(5):
        for _ in range(10):
            p = np.exp(w @ x[n]) / np.exp(w @ x[n]).sum()
            gradient = w.T @ (p - np.eye(3)[target[n]]) + 0.5 * v[seed[n]]
            x[n] = np.clip(x[n] - 0.1 * gradient / np.linalg.norm(gradient), 0, 1)
    np.testing.assert_allclose(ours.view(5, 4), x, rtol=1e-12)
    assert not ours.requires_grad


def test_translation_stands_still_where_there_is_no_gradient():
    flat = torch.zeros(2, 1, 2, 2)
    none = translate(
        flat,
        torch.tensor([0, 1]),
        torch.tensor([1, 0]),
        lambda p: 0 * p.flatten(1),
        lambda p: 0 * p.flatten(1),
        0.5,
        0.1,
        3,
    )
    assert torch.equal(none, flat)


def test_m2m_replaces_as_often_as_it_should_by_seeds_of_larger_classes():
    """Without steps, noise and doubt an image is replaced by its seed itself, so that the draws can be read off."""
    run = make_run("m2m(start=0, beta=0.98, gamma=0, steps=0, noise=0)")
    counts = COUNTS.astype(float)
    index = torch.tensor([int((run.task.train.labels == c).nonzero()[i]) for c in range(10) for i in range(3)])
    batch = Batch(run.inputs(run.task.train.images[index]), run.task.train.labels[index])
    flat = batch.inputs.flatten(1)
    assert (torch.cdist(flat, flat) < 1).sum() == 30  # all differ, so that the seed can be known again
    y, rounds, replaced = batch.target.numpy(), 1000, np.zeros((30, 30))
    for _ in range(rounds):
        out = run.procedure.replaced(run, batch)
        replaced[np.arange(30), torch.cdist(out.flatten(1), flat).argmin(1)] += 1
    p = np.array([[1 - 0.98 ** max(counts[s] - counts[own], 0) for s in y] for own in y])
    chosen = p / np.maximum(p.sum(1, keepdims=True), 1e-30)
    expected = (1 - counts[y] / 110)[:, None] * chosen * p
    np.fill_diagonal(expected, 1 - expected.sum(1))
    np.testing.assert_allclose(replaced / rounds, expected, atol=5 * 0.5 / math.sqrt(rounds))
    assert (replaced[:3] == rounds * np.eye(30)[:3]).all()  # the largest class stays as it is


def test_m2m_takes_only_what_g_is_sure_of():
    run = make_run("m2m(start=0.75, beta=0.0, gamma=0.3, steps=40)", model="cnn_small")
    for number in range(3):
        run.epoch(number)
    run.procedure.start_epoch(run, 3)
    batch = first_batch(run)
    run.network.eval()
    changed = run.procedure.replaced(run, batch)
    taken = (changed != batch.inputs).flatten(1).any(1)
    sure = run.procedure.g(changed).softmax(1).gather(1, batch.target[:, None]).squeeze(1)
    assert 0 < taken.sum() < 32 and (sure[taken] >= 0.3).all()
    pixels = changed * run.std[:, None, None] + run.mean[:, None, None]
    assert pixels.min() > -1e-5 and pixels.max() < 1 + 1e-5
    run.procedure.gamma = 1.1
    assert torch.equal(run.procedure.replaced(run, batch), batch.inputs)


def test_m2m_freezes_g_when_it_starts():
    run = make_run("m2m(start=0.5)", epochs=4)
    for number in range(4):
        at_start = {name: t.clone() for name, t in run.network.state_dict().items()}
        run.epoch(number)
        assert run.network.training
        if number == 2:
            kept = at_start
    for name, tensor in run.procedure.g.state_dict().items():
        assert torch.equal(tensor, kept[name])
    assert not any(p.requires_grad or p.grad is not None for p in run.procedure.g.parameters())
    assert not run.procedure.g.training


# -- virtual steps -----------------------------------------------------------------------------------------------------


class Regression:
    """Softmax regression in numpy: the loss on meta images after a step on weighed training images."""

    def __init__(self):
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
        return cross_entropies(self.meta_x @ self.ahead(weights).T, self.meta_y).mean()

    @property
    def losses(self):
        logits = self.network(torch.tensor(self.x))
        return torch.nn.functional.cross_entropy(logits, torch.tensor(self.y), reduction="none")

    def torch_meta_loss(self, parameters):
        logits = logits_with(self.network, parameters, torch.tensor(self.meta_x))
        return torch.nn.functional.cross_entropy(logits, torch.tensor(self.meta_y))


def central_differences(function, at, h=1e-6):
    return np.array([(function(at + h * e) - function(at - h * e)) / (2 * h) for e in np.eye(len(at))])


def test_a_virtual_step_is_one_of_gradient_descent():
    problem = Regression()
    weights = np.array([0.5, 1.0, 2.0, 0.1, 3.0])
    ahead = virtual_step(problem.network, (torch.tensor(weights) * problem.losses).sum(), 0.7)
    np.testing.assert_allclose(ahead["weight"].detach(), problem.ahead(weights), rtol=1e-12)
    assert problem.network.weight.grad is None
    np.testing.assert_allclose(problem.network.weight.detach(), problem.w)


def test_weight_corrections_against_finite_differences():
    problem = Regression()
    weights = np.array([0.5, 1.0, 2.0, 0.1, 3.0])
    eps = weight_corrections(problem.network, problem.losses, torch.tensor(weights), problem.torch_meta_loss, 0.7, 0.01)
    expected = -0.01 * central_differences(problem.meta_loss, weights)
    np.testing.assert_allclose(eps, expected, rtol=1e-6, atol=1e-10)


def test_the_gradient_of_the_weight_net_against_finite_differences():
    problem = Regression()
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


def test_domain_adaptation_adds_to_the_class_weights():
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


def test_meta_weight_net_step():
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
def test_the_weight_net_descends_as_sgd_does(nesterov):
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


# -- oltr --------------------------------------------------------------------------------------------------------------


def test_centroid_loss_against_loops():
    rng = np.random.default_rng(0)
    x, m, y = rng.normal(size=(6, 5)), rng.normal(size=(4, 5)), rng.integers(4, size=6)
    attract = sum(((x[n] - m[y[n]]) ** 2).sum() for n in range(6)) / 2 / 6
    others = sum(((x[n] - m[c]) ** 2).sum() for n in range(6) for c in range(4) if c != y[n]) / (6 * 4)
    for margin in (10.0, 0.5):  # others is about 7: one margin is passed, one is not
        expected = attract + 0.3 * max(margin - others, 0)
        ours = centroid_loss(torch.tensor(x), torch.tensor(y), torch.tensor(m), margin, 0.3)
        assert ours.item() == pytest.approx(expected, rel=1e-10)
    assert 0.5 < others < 10
    features, centroids = torch.tensor(x, requires_grad=True), torch.tensor(m, requires_grad=True)
    assert torch.autograd.gradcheck(lambda f, c: centroid_loss(f, torch.tensor(y), c), (features, centroids))


def test_oltr_starts_from_class_means_and_trains_them():
    run = make_run("oltr(start=0.5)", epochs=4, ema=0.5)
    for number in (0, 1):
        run.epoch(number)
        assert not run.network.head.remembers and run.network.head.centroids.grad is None
        assert run.network.head.centroids.abs().sum() == 0
    run.network.train()
    run.procedure.start_epoch(run, 2)
    assert run.network.training
    for network in (run.network, run.evaluated):
        assert network.head.remembers
        features = copy.deepcopy(network).eval().output(run.inputs(run.task.train.images)).features.detach()
        labels = run.task.train.labels
        expected = np.stack([features[labels == c].double().numpy().mean(0) for c in range(10)])
        np.testing.assert_allclose(network.head.centroids.detach(), expected, rtol=1e-4, atol=1e-5)
    start = run.network.head.centroids.detach().clone()
    run.epoch(3)
    assert not torch.equal(run.network.head.centroids, start)


def test_class_means_do_not_depend_on_chunks(monkeypatch):
    run = make_run("oltr")
    network = run.network.eval()
    whole = class_means(run, network)
    monkeypatch.setattr("equipoise.train.procedures.oltr.CHUNK", 50)
    torch.testing.assert_close(class_means(run, network), whole)
    assert whole.shape == (10, 16)


def test_oltr_adds_its_term_when_it_acts():
    run = make_run("oltr(start=0.5, weight=0.7, repel=0.2)")
    run.network.train()
    batch, totals = first_batch(run), {}
    for number in (1, 2):
        run.procedure.start_epoch(run, number)
        twin = copy.deepcopy(run.network)
        totals[number] = run.procedure(run, batch).total.item()
        out = twin.output(batch.inputs)
        plain = cross_entropies(out.logits.detach(), batch.target.numpy()).mean()
        extra = (
            0.7 * centroid_loss(out.features, batch.target, twin.head.centroids, repel=0.2).item() if number == 2 else 0
        )
        assert totals[number] == pytest.approx(plain + extra, rel=1e-4)
