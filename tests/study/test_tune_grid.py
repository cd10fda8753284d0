"""The coarse-to-fine grid: what it proposes, and that it spends its budget to the trial."""

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.study.tune.axis import Axis, around
from equipoise.study.tune.grid import GridSearch


def start_of(axes):
    return {dial: axis.values[len(axis.values) // 2] for dial, axis in axes.items()}


def searched(axes, score, budget, higher=True, start=None):
    """All points of a search, in waves."""
    search = GridSearch(axes, start or start_of(axes), budget, higher_is_better=higher)
    waves = []
    while wave := search.ask():
        waves.append(wave)
        search.tell([score(point) for point in wave])
    return waves


def distance(target, **point):
    """Minus the distance in decades."""
    return -math.hypot(*(math.log10(point[name] / value) for name, value in target.items()))


TWO = {"lr": Axis((0.0316, 0.1, 0.316), "log"), "weight_decay": Axis((1e-4, 3.16e-4, 1e-3), "log")}


def test_the_finer_grid_of_the_paper():
    """Best in the middle: no edge grows, and the next wave has what is half-way to the neighbours."""
    waves = searched(TWO, lambda p: distance({"lr": 0.1, "weight_decay": 3.16e-4}, **p), 25)
    assert [len(wave) for wave in waves] == [9, 16]
    lrs = {point["lr"] for point in waves[1]}
    assert lrs == {0.0316, 0.0562, 0.1, 0.178, 0.316}
    assert len({tuple(p.values()) for p in waves[0] + waves[1]}) == 25  # all of 5 x 5


def test_the_grid_grows_until_the_best_is_inside():
    target = {"lr": 3.0, "weight_decay": 3.16e-4}
    waves = searched(TWO, lambda p: distance(target, **p), 40)
    assert [{p["lr"] for p in wave} for wave in waves[1:4]] == [{1.0}, {3.16}, {10.0}]
    assert all(len({p["weight_decay"] for p in wave}) == 3 for wave in waves[1:4])  # with all of the other dial
    assert {p["lr"] for p in waves[4]} == {1.0, 1.78, 3.16, 5.62, 10.0}


def test_both_edges_grow_at_once():
    waves = searched(TWO, lambda p: distance({"lr": 1.0, "weight_decay": 1e-5}, **p), 16)
    assert len(waves[1]) == 7  # 4 x 4 less 3 x 3
    assert max(p["lr"] for p in waves[1]) == 1.0 and min(p["weight_decay"] for p in waves[1]) == 3.16e-5


def test_a_limit_stops_growth():
    keep = {"keep": Axis((0.6, 0.8), high=1.0)}
    waves = searched(keep, lambda p: p["keep"], 4, start={"keep": 0.6})
    assert [[p["keep"] for p in wave] for wave in waves] == [[0.6, 0.8], [1.0], [0.9]]


def test_the_start_and_its_neighbours_come_first():
    start = {"lr": 0.1, "weight_decay": 3.16e-4}
    waves = searched(TWO, lambda p: 0.0, 8, start=start)
    assert [len(wave) for wave in waves] == [4, 2, 1, 1]  # a wave that does not fit gets half of what is left
    assert waves[0][0] == start
    assert all(sum(p[dial] != start[dial] for dial in start) == 1 for p in waves[0][1:])


def test_less_can_be_better_and_failures_are_never_best():
    def loss(point):
        return None if point["lr"] > 0.2 else -distance({"lr": 1.0, "weight_decay": 3.16e-4}, **point)

    search = GridSearch(TWO, start_of(TWO), 12, higher_is_better=False)
    while wave := search.ask():
        search.tell([loss(point) for point in wave])
    best = dict(zip(TWO, search.best, strict=True))
    assert best["lr"] <= 0.2
    reference = min((v, k) for k, v in ((k, -m) for k, m in search.tried.items()) if math.isfinite(v))
    assert search.best == reference[1]


def test_when_all_fail_it_goes_on_around_the_start():
    waves = searched(TWO, lambda p: None, 20)
    assert sum(map(len, waves)) == 20


def test_choices_and_whole_numbers_are_used_up_before_it_gives_up():
    axes = {"norm": Axis(("a", "b")), "size": Axis((1, 2, 3), low=1, high=5)}
    points = list(itertools.chain(*searched(axes, lambda p: p["size"] == 2, 10)))
    assert {tuple(p.values()) for p in points} == set(itertools.product("ab", range(1, 6))) and len(points) == 10
    assert sum(map(len, searched(axes, lambda p: 0.0, 11))) == 10  # nothing else is there


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(1, 3), st.randoms(use_true_random=False), st.booleans())
def test_the_budget_is_spent_to_the_trial_and_nothing_is_tried_twice(budget, dials, random, fails):
    axes = {f"d{i}": around(10.0**-i) for i in range(dials)}
    waves = searched(axes, lambda p: None if fails and random.random() < 0.3 else random.random(), budget)
    points = [tuple(p.values()) for wave in waves for p in wave]
    assert len(points) == len(set(points)) == budget


def test_it_finds_a_peak_between_the_coarse_values():
    target = {"lr": 0.9, "weight_decay": 2e-5}
    points = itertools.chain(*searched(TWO, lambda p: distance(target, **p), 60))
    best = max(points, key=lambda p: distance(target, **p))
    assert -distance(target, **best) < 0.1  # decades; the coarse steps are half a decade
