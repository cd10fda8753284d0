"""What every mixing must do, at each of its examples."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..core import Card
from ._cases import C, Case, cases_of, require, run, same


def check_mix(mix: Card | str) -> None:
    """Run all `CHECKS` on a registered mixing, at each of its examples."""
    run(CHECKS, cases_of(mix, "mix"))


def batch(n: int = 10) -> tuple[Tensor, Tensor]:
    return torch.randn(n, 1, 6, 6, generator=torch.Generator().manual_seed(n)), torch.arange(n) % C


def mixed_with(case: Case, seed: int) -> Any:
    mix = case.build()
    mix.generator = torch.Generator().manual_seed(seed)
    return mix(*batch())


def the_generator_decides(case: Case) -> None:
    before = torch.get_rng_state()
    first, again, other = mixed_with(case, 1), mixed_with(case, 1), mixed_with(case, 2)
    require(torch.equal(before, torch.get_rng_state()), "it drew from PyTorch's global generator")
    same((first.inputs, first.lam), (again.inputs, again.lam), "with the same generator it", rtol=0, atol=0)
    require(not torch.equal(first.partner, other.partner), "another generator gave the same partners")


def labels_are_shared_out(case: Case) -> None:
    mixed, (x, target) = mixed_with(case, 1), batch()
    require(mixed.inputs.shape == x.shape and mixed.inputs.dtype == x.dtype, "mixed inputs have another shape or type")
    for name, share in (("lam", mixed.lam), ("label_lam", mixed.label_lam)):
        require(share.shape == target.shape, f"{name} is {tuple(share.shape)} for {len(target)} samples")
        require(((share >= 0) & (share <= 1)).all(), f"{name} must lie between 0 and 1, not {share.tolist()}")
    inside = (mixed.partner >= 0) & (mixed.partner < len(target))
    require(inside.all(), "a partner is no sample of the batch")


def evaluation_leaves_the_batch_alone(case: Case) -> None:
    mix, (x, target) = case.build().eval(), batch()
    mixed = mix(x, target)
    require(torch.equal(mixed.inputs, x), "it mixed in evaluation mode")
    require((mixed.label_lam == 1).all(), "labels are shared out in evaluation mode")


def a_batch_of_one_stays_what_it_is(case: Case) -> None:
    x, target = batch(1)
    same(case.build()(x, target).inputs, x, "a sample alone", rtol=0, atol=0)


CHECKS = (
    the_generator_decides,
    labels_are_shared_out,
    evaluation_leaves_the_batch_alone,
    a_batch_of_one_stays_what_it_is,
)
