"""OLTR's centroids against loops."""

import copy

import numpy as np
import pytest
import torch

from equipoise.train.procedures import centroid_loss
from equipoise.train.procedures.oltr import class_means


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


def test_oltr_starts_from_class_means_and_trains_them(make_run):
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


def test_class_means_do_not_depend_on_chunks(monkeypatch, make_run):
    run = make_run("oltr")
    network = run.network.eval()
    whole = class_means(run, network)
    monkeypatch.setattr("equipoise.train.procedures.oltr.CHUNK", 50)
    torch.testing.assert_close(class_means(run, network), whole)
    assert whole.shape == (10, 16)


def test_oltr_adds_its_term_when_it_acts(make_run, first_batch, cross_entropies):
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
