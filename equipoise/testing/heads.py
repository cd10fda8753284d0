"""What every head must do, at each of its examples."""

from __future__ import annotations

import copy
import inspect

import torch
import torch.nn.functional as F

from ..core import Card
from ._cases import FEATURES, C, Case, cases_of, require, run, same


def check_head(head: Card | str) -> None:
    """Run all `CHECKS` on a registered head, at each of its examples."""
    run(CHECKS, cases_of(head, "head"))


def features_become_logits(case: Case) -> None:
    first = list(inspect.signature(case.card.factory).parameters)[:2]
    require(first == ["in_features", "num_classes"], f"its first arguments are {first}, not in_features, num_classes")
    head = case.build()
    logits = head(torch.randn(3, FEATURES))
    require(logits.shape == (3, C), f"it gave {tuple(logits.shape)} for 3 samples of {C} classes")
    shape = tuple(head.weight.shape)  # what post-hoc methods and analyses read
    require(shape == (C, FEATURES), f"its `weight` is {shape}, not {(C, FEATURES)}")
    there = {name for name, _ in head.named_parameters()}
    require(isinstance(head.no_decay, tuple) and set(head.no_decay) <= there, "`no_decay` must name its parameters")


def a_copy_gives_the_same(case: Case) -> None:
    head, x = case.build().eval(), torch.randn(3, FEATURES)
    same(copy.deepcopy(head)(x), head(x), "a copy", rtol=0, atol=0)


def new_weights_can_be_drawn(case: Case) -> None:
    head = case.build()
    before = head.weight.detach().clone()
    head.reset_parameters()
    require(not torch.equal(head.weight, before), "reset_parameters left the weights as they were")
    torch.manual_seed(9)
    head.reset_parameters()
    torch.manual_seed(9)
    same(case.build().weight, head.weight, "reset_parameters draws otherwise than the constructor: it", rtol=0, atol=0)


def an_empty_batch_leaves_no_trace(case: Case) -> None:
    head = case.build()
    before = copy.deepcopy(head.state_dict())
    logits = head(torch.zeros(0, FEATURES, requires_grad=True))
    require(logits.shape == (0, C), f"an empty batch gave {tuple(logits.shape)}")
    logits.sum().backward()
    require(all(torch.equal(t, before[name]) for name, t in head.state_dict().items()), "an empty batch changed it")


def it_learns_a_direction_for_each_class(case: Case) -> None:
    x = torch.randn(C, FEATURES).repeat(8, 1) + 0.1 * torch.randn(8 * C, FEATURES)
    y = torch.arange(C).repeat(8)
    head = case.build()
    optimizer = torch.optim.Adam(head.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        F.cross_entropy(head(x), y).backward()
        optimizer.step()
    right = float((head.eval()(x).argmax(1) == y).float().mean())
    require(right > 0.9, f"it classified {right:.0%} of five well separated classes after 100 steps")


CHECKS = (
    features_become_logits,
    a_copy_gives_the_same,
    new_weights_can_be_drawn,
    an_empty_batch_leaves_no_trace,
    it_learns_a_direction_for_each_class,
)
