"""How trainings are put together on a GPU."""

from dataclasses import replace

import pytest
import torch

from equipoise.store import Store
from equipoise.study.run import job as job_file
from equipoise.study.run.how import How
from equipoise.study.run.job import Job, measured_pack_size
from equipoise.study.run.loads import loads_of
from equipoise.train import Recipe
from equipoise.train.procedures import MetaWeightNet

GPU = torch.device("cuda")  # only its name is looked at


def jobs(count: int, **changes: object) -> list[Job]:
    recipe = Recipe.make({"model": "cnn_small", "epochs": 3, **changes}, {"name": "digits"}, 0)
    return [Job((replace(recipe, seed=seed),)) for seed in range(count)]


@pytest.mark.parametrize(
    ("count", "most", "sizes"),
    [(18, 8, [6, 6, 6]), (18, 16, [9, 9]), (27, 16, [14, 13]), (36, 8, [8, 7, 7, 7, 7]), (3, 8, [3]), (2, 1, [1, 1])],
)
def test_packs_are_even(count, most, sizes):
    loads = loads_of(jobs(count), GPU, most)
    assert [len(load) for load in loads] == sizes
    assert [job.training.seed for load in loads for job in load] == list(range(count))


def test_only_what_is_alike_goes_together():
    small, large, procedure = jobs(3), jobs(2, batch_size=64), [*jobs(1, procedure="m2m"), *jobs(1, procedure="bbn")]
    mixed = [small[0], large[0], procedure[0], small[1], large[1], procedure[1], small[2]]
    assert loads_of(mixed, GPU, 8) == [small, large, procedure], "a procedure's steps are longer than plain ones"
    peers = jobs(2, procedure="mutual")
    assert loads_of([*small, *peers], GPU, 8) == [[*small, *peers]]


def test_measured_is_for_the_most_that_may_go_together(monkeypatch):
    """Of ten runs with small batches and five with large ones, ten at most share a pack."""
    asked = []
    monkeypatch.setattr(job_file, "ask", lambda device, what, recipe, runs, *rest: asked.append(runs) or 4)
    runs = [*jobs(5, batch_size=64), *jobs(10)]
    assert measured_pack_size(runs, Store("nowhere"), How(GPU)) == 4 and asked == [10]


def test_what_no_graph_can_have_goes_alone(monkeypatch):
    monkeypatch.setattr(MetaWeightNet, "in_graphs", False)
    assert [len(load) for load in loads_of(jobs(2, procedure="meta_weight_net"), GPU, 8)] == [1, 1]


def test_the_longest_go_with_each_other():
    short, long = jobs(5), jobs(2, epochs=4)
    middle = [replace(job, until=3) for job in jobs(1, epochs=9)]
    mixed = [short[0], long[0], middle[0], *short[1:], long[1]]
    assert loads_of(mixed, GPU, 8) == [[*long, short[0], middle[0], *short[1:]]]
    assert loads_of(mixed, GPU, 4) == [[*long, short[0], middle[0]], short[1:]]


def test_a_core_has_one_at_a_time():
    assert [len(load) for load in loads_of(jobs(3), torch.device("cpu"), 8)] == [1, 1, 1]
