"""What a stack counts for all its runs, and how it moves their weights: as each run would by itself."""

from __future__ import annotations

import math

import pytest
import torch

from equipoise.data import load_task
from equipoise.train import Recipe, Run
from equipoise.train.stacked.counters import Counters
from equipoise.train.stacked.descent import is_plain

CPU = torch.device("cpu")
OPTIONS = [{"epochs": 3}, {"epochs": 5, "schedule": "cosine", "lr": 0.3}, {"epochs": 3, "layer_decay": 0.5}]


@pytest.fixture(scope="module")
def task():
    return load_task("digits", valid=0)


def make_runs(task, options=OPTIONS) -> list[Run]:
    common = {"model": "cnn_small", "batch_size": 256}
    return [Run(Recipe.make({**common, **o}, {"name": "digits"}, seed=s), task, CPU) for s, o in enumerate(options)]


def test_a_run_counts_as_it_would_alone(task):
    together, alone = make_runs(task), make_runs(task)
    counters = Counters(together)
    losses = torch.tensor([[1.0, 2.0, 3.0], [math.nan, 1.0, math.inf], [2.0, math.nan, 1.0]])
    for run in (*together, *alone):
        run.begin_epoch(0)
    for step in range(together[0].steps_per_epoch + 2):
        counters.set_rates()
        counters.choose_samples()
        for i, run in enumerate(alone):
            index, place = run.next_index()
            assert torch.equal(counters.index[i], index) and torch.equal(counters.place[i], place)
            assert torch.equal(counters.progress[i], run.progress)
            rates = [[group["lr"] for group in r.optimizer.param_groups] for r in (together[i], run)]
            assert all(map(torch.equal, *rates)) and len(rates[0]) == len(run.rate.values)
            run.count(losses[step % 3, i])
        counters.count(losses[step % 3])
        for mine, theirs in zip(together, alone, strict=True):
            for name in ("done", "bad_step"):
                assert torch.equal(getattr(mine, name), getattr(theirs, name)), name
            torch.testing.assert_close(mine.loss_sum, theirs.loss_sum, equal_nan=True)


def test_runs_that_were_under_way_go_on_where_they_were(task):
    runs = make_runs(task)
    for run in runs:
        run.begin_epoch(0)
        run.step()
    before = [(int(run.done), float(run.loss_sum), run.order.clone()) for run in runs]
    for _ in range(2):  # as when a pack loses a member
        Counters(runs)
    for run, (done, loss, order) in zip(runs, before, strict=True):
        assert (int(run.done), float(run.loss_sum)) == (done, loss) and torch.equal(run.order, order)
        run.begin_epoch(1)
        run.step()
        assert int(run.done) == done + 1 and float(run.lr) > 0


@pytest.mark.parametrize(
    ("options", "plain"),
    [
        ({}, True),
        ({"nesterov": True, "affine_decay": False}, True),
        ({"momentum": 0.0}, True),
        ({"optimizer": "adamw"}, False),
        ({"layer_decay": 0.5}, False),
        ({"affine_towards": 1}, False),
    ],
)
def test_whose_weights_move_together(task, options, plain):
    (run,) = make_runs(task, [options])
    assert is_plain(run) == plain
