"""Corrections as multiples and shifts of logits: what the methods of `equipoise.imbalance` give, exactly."""

import pytest
import torch
from torch import nn

from equipoise.core import Output
from equipoise.imbalance import LogitAdjust, TauNorm
from equipoise.improvement import Affine
from equipoise.improvement.candidates import logit_shift, tau_normalization


@pytest.fixture
def head():
    torch.manual_seed(0)
    return nn.Linear(6, 4).double().requires_grad_(False)


@pytest.mark.parametrize("tau", [0.3, 1.0, 1.7])
def test_tau_normalization_of_logits_is_that_of_the_weights(head, tau):
    features = torch.randn(20, 6).double()
    expected = TauNorm(head.weight, tau)(Output(head(features), features))
    torch.testing.assert_close(tau_normalization(head, tau)(head(features)), expected)


def test_logit_shift_is_logit_adjustment_up_to_a_constant():
    logits, prior = torch.randn(20, 3).double(), (0.2, 0.3, 0.5)
    expected = LogitAdjust([50, 30, 5], 0.8, prior)(Output(logits)).log_softmax(1)
    shift = logit_shift(torch.tensor([50, 30, 5]), torch.tensor(prior).double(), 0.8)
    torch.testing.assert_close(shift(logits).log_softmax(1), expected)


def test_one_after_the_other_is_one():
    torch.manual_seed(0)
    first, second = (Affine(torch.rand(3).double(), torch.randn(3).double()) for _ in range(2))
    logits = torch.randn(5, 3).double()
    torch.testing.assert_close(first.then(second)(logits), second(first(logits)))


def test_a_last_layer_takes_a_correction_up(head):
    correction = Affine(torch.rand(4).double() + 0.5, torch.randn(4).double())
    features = torch.randn(5, 6).double()
    expected = correction(head(features))
    assert correction.fits_into(head)
    correction.put_into(head)
    torch.testing.assert_close(head(features), expected)
    assert not correction.fits_into(nn.Linear(6, 4, bias=False)) and not correction.fits_into(None)
