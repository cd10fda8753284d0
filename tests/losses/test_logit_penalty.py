import numpy as np
import pytest
import torch

from equipoise.core import Batch, Output, Spec
from equipoise.losses import LogitPenalty, logit_penalty


def test_reference():
    logits = torch.randn(6, 5, dtype=torch.float64, requires_grad=True)
    z = logits.detach().numpy()
    expected = np.array([0.3 * sum(value**2 for value in row) for row in z])
    np.testing.assert_allclose(logit_penalty(logits, 0.3).detach(), expected, rtol=1e-12)
    penalty = LogitPenalty(0.3)(Output(logits), Batch(torch.zeros(6), torch.zeros(6, dtype=torch.long)))
    np.testing.assert_allclose(penalty.item(), expected.mean(), rtol=1e-12)
    penalty.backward()
    np.testing.assert_allclose(logits.grad, 0.3 * 2 * z / 6, rtol=1e-12)


def test_by_hand():
    # 0.01 * (9 + 16) = 0.25, and half of it in the released code
    logits = torch.tensor([[3.0, 4.0]])
    assert logit_penalty(logits, 0.01).item() == pytest.approx(0.25)
    assert logit_penalty(logits, 0.01, half=True).item() == pytest.approx(0.125)


def test_neutral_adds_nothing():
    batch = Batch(torch.zeros(2), torch.zeros(2, dtype=torch.long))
    assert LogitPenalty(0.0)(Output(torch.randn(2, 3)), batch).item() == 0


def test_half_precision_is_summed_in_float32():
    # 1000 squares of 100 are 1e7: beyond what bfloat16 can add up
    value = logit_penalty(torch.full((1, 1000), 100.0, dtype=torch.bfloat16), beta=1.0)
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(1e7)


def test_spec_and_repr():
    penalty = Spec.parse("logit_penalty(beta=0.1, half=True)").build("penalty")
    assert repr(penalty) == "LogitPenalty(beta=0.1, half=True)"
    assert repr(eval(repr(penalty))) == repr(penalty)


def test_refuses():
    with pytest.raises(ValueError, match="beta must be at least 0"):
        LogitPenalty(-1)
