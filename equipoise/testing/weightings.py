"""What every weighting must do, at each of its examples."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from ..core import Card, Output
from ._cases import COUNTS, C, Case, cases_of, require, run, same

TARGET = torch.tensor([0, 4, 1, 1, 3, 2])


def check_weighting(weighting: Card | str) -> None:
    """Run all `CHECKS` on a registered weighting, at each of its examples."""
    run(CHECKS, cases_of(weighting, "weighting"))


def outputs(n: int = len(TARGET)) -> Output:
    """What a network gave for the first `n` samples."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(len(TARGET), 2, 3, 3, generator=generator)[:n]
    return Output(torch.zeros(n, C), features.mean((2, 3)), features)


def weights(case: Case, n: int = len(TARGET)) -> Tensor:
    return case.build()(TARGET[:n], outputs(n))


def each_sample_has_a_weight(case: Case) -> None:
    weight = weights(case)
    require(weight.shape == TARGET.shape, f"it gave {tuple(weight.shape)} for {len(TARGET)} samples")
    require(weight.isfinite().all() and (weight >= 0).all(), f"weights must be finite and not negative, not {weight}")


def labels_of_any_whole_type(case: Case) -> None:
    for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32):
        same(case.build()(TARGET.to(dtype), outputs()), weights(case), f"with labels of {dtype} it", rtol=0, atol=0)


def an_empty_batch_has_no_weights_and_leaves_no_trace(case: Case) -> None:
    weighting = case.build()
    empty = weighting(TARGET[:0], outputs(0))
    require(empty.shape == (0,), f"an empty batch gave {tuple(empty.shape)}")
    same(weighting(TARGET, outputs()), weights(case), "after an empty batch it", rtol=0, atol=0)


def casting_the_module_changes_no_weight(case: Case) -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        same(case.build().to(dtype)(TARGET, outputs()), weights(case), f"as a module of {dtype} it", rtol=0, atol=0)


def built_on_the_meta_device_it_keeps_its_counts(case: Case) -> None:
    for counts in (COUNTS, torch.tensor(COUNTS)):
        with torch.device("meta"):
            weighting = case.build(counts)
        for each in (copy.deepcopy(weighting), copy.deepcopy(weighting).to_empty(device="cpu")):
            same(each(TARGET, outputs()), weights(case), "built on the meta device it", rtol=0, atol=0)


def neutral_weighs_all_alike(case: Case) -> None:
    if case.card.neutral:
        weight = case.build(**case.card.neutral)(TARGET, outputs())
        same(weight, torch.ones_like(weight), f"at {dict(case.card.neutral)} it")


CHECKS = (
    each_sample_has_a_weight,
    labels_of_any_whole_type,
    an_empty_batch_has_no_weights_and_leaves_no_trace,
    casting_the_module_changes_no_weight,
    built_on_the_meta_device_it_keeps_its_counts,
    neutral_weighs_all_alike,
)
