"""Compares a loss, and its gradient, with a slow reference in float64 numpy."""

import numpy as np
import pytest
import torch


def complex_step_gradient(reference, row, label):
    """d reference / d row to machine precision: the imaginary part of f(x + ih) over h has no cancellation."""
    gradient, h = np.zeros(len(row)), 1e-30
    for k in range(len(row)):
        step = row.astype(complex)
        step[k] += 1j * h
        gradient[k] = reference(step, label).imag / h
    return gradient


@pytest.fixture
def agrees_with():
    """`check(loss, reference)`: values and gradients on random logits agree to 1e-9, in float32 to its rounding.

    `reference(z, y)` takes one row of logits, real or complex, and its label.
    """

    def check(loss, reference, num_classes=5, spread=3.0, labels=None):
        rng = np.random.default_rng(0)
        labels = np.arange(num_classes) if labels is None else np.array(labels)
        rows = spread * rng.standard_normal((len(labels), num_classes))
        rows = rows.astype(np.float32).astype(np.float64)
        weights = rng.uniform(0.5, 2, len(labels))  # unequal, so that rows cannot be mistaken for one another
        pairs = list(zip(rows, labels, strict=True))
        expected = np.array([reference(z, y).real for z, y in pairs])
        slopes = [w * complex_step_gradient(reference, z, y) for w, (z, y) in zip(weights, pairs, strict=True)]
        steepest = max(1, np.abs(slopes).max())
        for dtype, rtol, atol in ((torch.float64, 1e-9, 1e-14), (torch.float32, 1e-5, 1e-5)):
            logits = torch.tensor(rows, dtype=dtype, requires_grad=True)
            values = loss.per_sample(logits, torch.tensor(labels))
            values.backward(torch.tensor(weights, dtype=dtype))
            np.testing.assert_allclose(values.detach(), expected, rtol=rtol, atol=atol)
            np.testing.assert_allclose(logits.grad, slopes, rtol=rtol, atol=atol * steepest)

    return check
