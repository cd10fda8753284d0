"""What every sampler must do, at each of its examples."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import DataLoader

from ..core import Card
from ._cases import Case, cases_of, require, run

LABELS = [i % 4 for i in range(40)]


def check_sampler(sampler: Card | str) -> None:
    """Run all `CHECKS` on a registered sampler, at each of its examples."""
    run(CHECKS, cases_of(sampler, "sampler"))


def seed_and_epoch_make_the_order(case: Case) -> None:
    sampler = case.build(labels=LABELS, seed=1)
    order = list(sampler)
    require(all(0 <= index < len(LABELS) for index in order), "it names samples that are not there")
    require(list(case.build(labels=LABELS, seed=1)) == order, "the same seed gave another order")
    require(list(case.build(labels=LABELS, seed=2)) != order, "another seed gave the same order")
    sampler.set_epoch(1)
    require(list(sampler) != order, "the next epoch has the same order")
    sampler.set_epoch(0)
    require(list(sampler) == order, "the first epoch, once more, has another order")


def the_order_does_not_depend_on_the_number_of_processes(case: Case) -> None:
    order = list(case.build(labels=LABELS, seed=3))
    for processes in (2, 3, 5):
        ranks = [case.build(labels=LABELS, seed=3, rank=rank, num_replicas=processes) for rank in range(processes)]
        parts = [list(rank) for rank in ranks]
        lengths = {len(part) for part in parts}
        require(lengths == {-(-len(order) // processes)}, f"{processes} processes visit {sorted(lengths)} samples each")
        together = [index for turn in zip(*parts, strict=True) for index in turn]
        require(together[: len(order)] == order, f"{processes} processes together have another order")


def it_draws_from_its_generator_alone(case: Case) -> None:
    sampler, before = case.build(labels=LABELS), torch.get_rng_state()
    first, again = (sampler.order(torch.Generator().manual_seed(7), 0.3) for _ in range(2))
    require(torch.equal(first, again), "the same generator gave another order")
    require(first.dtype == torch.int64, f"indices must be int64, not {first.dtype}")
    require(torch.equal(before, torch.get_rng_state()), "it drew from PyTorch's global generator")


def it_works_in_a_data_loader(case: Case) -> None:
    data: Any = list(range(40))
    batches = list(DataLoader(data, batch_size=8, sampler=case.build(labels=LABELS)))
    require(torch.cat(batches).tolist() == list(case.build(labels=LABELS)), "a DataLoader has another order")


CHECKS = (
    seed_and_epoch_make_the_order,
    the_order_does_not_depend_on_the_number_of_processes,
    it_draws_from_its_generator_alone,
    it_works_in_a_data_loader,
)
