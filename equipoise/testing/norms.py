"""What every norm must do, at each of its examples."""

from __future__ import annotations

import copy

import torch

from ..core import Card
from ._cases import FEATURES, Case, cases_of, require, run, same

SHAPE = (8, FEATURES, 3, 4)


def check_norm(norm: Card | str) -> None:
    """Run all `CHECKS` on a registered norm, at each of its examples."""
    run(CHECKS, cases_of(norm, "norm"))


def it_gives_what_it_takes(case: Case) -> None:
    norm = case.build()
    for training in (True, False):
        x = torch.randn(SHAPE, requires_grad=True)
        y = norm.train(training)(x)
        require(y.shape == x.shape and y.dtype == x.dtype, f"it gave {y.dtype} {tuple(y.shape)} for {tuple(x.shape)}")
        (slope,) = torch.autograd.grad((y * torch.randn(SHAPE)).sum(), x)
        require(y.isfinite().all() and slope.isfinite().all(), "values or gradients are not finite")


def a_batch_is_normalized(case: Case) -> None:
    x = 5 + 3 * torch.randn(SHAPE)
    y = case.build()(x).detach()
    mean, deviation = float(y.mean()), float(y.std())
    require(abs(mean) < 0.2, f"the mean of a normalized batch is {mean:.2f}")
    require(0.7 < deviation < 1.3, f"the standard deviation of a normalized batch is {deviation:.2f}")


def the_gradient_is_that_of_the_value(case: Case) -> None:
    x = torch.randn(4, FEATURES, 2, 2, dtype=torch.float64, requires_grad=True)
    norm = case.build().double()
    torch.autograd.gradcheck(lambda x: copy.deepcopy(norm)(x), x)


def a_copy_and_its_state_give_the_same(case: Case) -> None:
    norm, x = case.build(), torch.randn(SHAPE)
    norm(x)
    norm.eval()
    again = case.build()
    again.load_state_dict(norm.state_dict())
    for what, each in (("a copy", copy.deepcopy(norm)), ("its state", again.eval())):
        same(each(x), norm(x), what, rtol=0, atol=0)


def in_inference_a_sample_does_not_feel_the_others(case: Case) -> None:
    norm, x = case.build(), torch.randn(SHAPE)
    norm(x)
    norm.eval()
    same(norm(x[:1]), norm(x)[:1], "a sample alone")


CHECKS = (
    it_gives_what_it_takes,
    a_batch_is_normalized,
    the_gradient_is_that_of_the_value,
    a_copy_and_its_state_give_the_same,
    in_inference_a_sample_does_not_feel_the_others,
)
