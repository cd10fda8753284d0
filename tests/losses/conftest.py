"""Compares a loss, and its gradient, with a slow reference in float64 numpy."""

import numpy as np
import pytest
import torch

from equipoise.losses import _softmax


def complex_step_gradient(reference, row, label):
    """d reference / d row to machine precision: the imaginary part of f(x + ih) over h has no cancellation."""
    gradient, h = np.zeros(len(row)), 1e-30
    for k in range(len(row)):
        step = row.astype(complex)
        step[k] += 1j * h
        gradient[k] = reference(step, label).imag / h
    return gradient


@pytest.fixture(params=["few", "many"])
def as_many(request, monkeypatch):
    """Any batch is treated as one of few classes and logits, then as one of many."""
    monkeypatch.setattr(_softmax, "FEW", 10**9 if request.param == "few" else 0)
    monkeypatch.setattr(_softmax, "MANY", 10**9 if request.param == "few" else 0)


@pytest.fixture
def agrees_with(as_many):
    """`check(loss, reference)`: values and gradients on random logits agree to 1e-9.

    `reference(z, y)` takes one row of logits, real or complex, and its label.
    """

    def check(loss, reference, num_classes=5, spread=3.0, labels=None):
        rng = np.random.default_rng(0)
        labels = np.arange(num_classes) if labels is None else np.array(labels)
        rows = spread * rng.standard_normal((len(labels), num_classes))
        logits = torch.tensor(rows, requires_grad=True)
        values = loss.per_sample(logits, torch.tensor(labels))
        weights = rng.uniform(0.5, 2, len(labels))  # unequal, so that rows cannot be mistaken for one another
        values.backward(torch.tensor(weights))
        pairs = list(zip(rows, labels, strict=True))
        np.testing.assert_allclose(values.detach(), [reference(z, y).real for z, y in pairs], rtol=1e-9, atol=1e-14)
        gradient = [w * complex_step_gradient(reference, z, y) for w, (z, y) in zip(weights, pairs, strict=True)]
        np.testing.assert_allclose(logits.grad, gradient, rtol=1e-9, atol=1e-14)

    return check
