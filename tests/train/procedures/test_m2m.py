"""M2m against its formulas, and translated images against a loop."""

import math

import numpy as np
import torch

from equipoise.core import Batch
from equipoise.train.procedures import seed_probability
from equipoise.train.procedures.m2m import translate

COUNTS = np.array([110, 78, 56, 40, 29, 20, 14, 10, 7, 5])


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


def test_m2m_replaces_as_often_as_it_should_by_seeds_of_larger_classes(make_run):
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


def test_m2m_takes_only_what_g_is_sure_of(make_run, first_batch):
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


def test_m2m_freezes_g_when_it_starts(make_run):
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
