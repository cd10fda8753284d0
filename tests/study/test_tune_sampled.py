"""Optuna's samplers: budgets to the trial, no repeated point, and a killed search goes on as if it had not been."""

import collections
import statistics

import optuna
import pytest

from equipoise.core import EquipoiseError
from equipoise.study.tune.axis import Axis
from equipoise.study.tune.sampled import WAVE, SampledSearch, explained, storage_at, storage_in

AXES = {
    "lr": Axis((0.03, 0.1, 0.3), "log"),
    "weighting.beta": Axis((0.9, 0.99, 0.999), "towards_one", low=0.0),
    "norm.ghost_size": Axis((4, 8, 16), "log", low=1),
    "head.bias": Axis((True, False)),
}
START = {"lr": 0.1, "weighting.beta": 0.99, "norm.ghost_size": 8, "head.bias": False}


@pytest.fixture
def search():
    """Makes searches; those of one `place` find each other's trials, as two processes on one file do."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    places = collections.defaultdict(optuna.storages.InMemoryStorage)

    def make(budget=10, sampler="tpe", axes=AXES, start=START, prunes=False, higher=True, place=0):
        return SampledSearch(
            axes, start, budget, higher_is_better=higher, sampler=sampler, prunes=prunes, name="s",
            storage=places[place],
        )  # fmt: skip

    return make


def score(point):
    return point["lr"] - point["weighting.beta"] + point["norm.ghost_size"] / 100 + point["head.bias"]


def finish(search):
    points = []
    while wave := search.ask():
        points += wave
        search.tell([score(point) for point in wave])
    return points


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_the_budget_is_spent_to_the_trial(search, sampler):
    points = finish(search(10, sampler))
    assert len(points) == len({tuple(p.values()) for p in points}) == 10
    assert points[0] == START  # the recipe as it is written
    for point in points:
        assert 0.009 <= point["lr"] <= 1 and 0 <= point["weighting.beta"] <= 0.9999
        assert type(point["norm.ghost_size"]) is int and 2 <= point["norm.ghost_size"] <= 32
        assert type(point["head.bias"]) is bool


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_a_search_cut_anywhere_goes_on_as_if_nothing_had_happened(search, sampler):
    whole = finish(search(10, sampler, place="whole"))
    for died_after in (0, 1, 4, 6):  # trials told
        one, left = search(10, sampler, place=died_after), died_after
        while wave := one.ask():
            told = min(left, len(wave))
            one.wave = one.wave[:told]
            one.tell([score(point) for point in wave[:told]])
            left -= told
            if told < len(wave):
                break
        assert finish(search(10, sampler, place=died_after)) == whole


def test_a_search_cut_while_it_took_up_its_start_begins_with_it(search):
    whole = finish(search(10, place="whole"))
    search(10).study.ask()  # the start waits no longer, and none of its values is stored yet
    assert finish(search(10)) == whole


def test_a_search_cut_while_it_asked(search):
    whole = finish(search(place="whole"))
    one = search()
    one.known = {}
    for _ in range(2):  # of a wave of four
        values, _ = one._proposed()
        one.known[values] = None
    one.study.ask()  # and one that has no values yet
    assert finish(search()) == whole


def test_a_larger_budget_goes_on_and_a_smaller_one_takes_the_first(search):
    six = finish(search(6))
    assert finish(search(6)) == six
    assert finish(search(4)) == six[:4]
    assert finish(search(11))[:6] == six


def test_two_processes_that_take_turns_go_through_the_waves_of_one(search):
    whole = finish(search(place="whole"))
    one, other, points = search(), search(), ([], [])
    for turn in (0, 1, 1, 0, 0, 1, 1, 0):
        searching = (one, other)[turn]
        wave = searching.ask()
        points[turn].extend(wave)
        searching.tell([score(point) for point in wave])
    assert points == (whole, whole)
    assert len([t for t in one.study.trials if "duplicate" not in t.user_attrs]) == len(whole)


def test_small_spaces_are_used_up_without_a_repetition(search):
    axes = {"size": Axis((1, 2, 3), low=1, high=3), "kind": Axis(("a", "b"))}
    one = search(6, axes=axes, start={"size": 2, "kind": "b"})
    points = []
    while wave := one.ask():
        points += wave
        one.tell([0.0] * len(wave))
    assert len({tuple(p.values()) for p in points}) == len(points) == 6
    counted = [t for t in one.study.trials if "duplicate" not in t.user_attrs]
    assert len(counted) == 6


def test_pruned_below_the_median_of_those_before(search):
    """Optuna compares with the median, after as many runs, of the trials that have been told."""
    one, first_runs = search(20, "random", prunes=True), []
    while wave := one.ask():
        drops = []
        for place, point in enumerate(wave):
            value = score(point)
            drops.append(one.hopeless(place, 1, value))
            expected = len(first_runs) >= 5 and value < statistics.median(first_runs)
            assert drops[-1] == expected
        first_runs += [score(p) for p, drop in zip(wave, drops, strict=True) if not drop]
        one.tell([None if drop else score(p) for p, drop in zip(wave, drops, strict=True)])
    states = [t.state for t in one.study.trials]
    assert 0 < states.count(optuna.trial.TrialState.PRUNED) < 20 == len(states)
    again, replayed = search(20, "random", prunes=True), []
    while wave := again.ask():
        # what was decided stays, whatever the value
        replayed += [again.hopeless(place, 1, float("nan")) for place, _ in enumerate(wave)]
        again.tell([0.0] * len(wave))
    assert replayed == [state == optuna.trial.TrialState.PRUNED for state in states]


def test_a_failed_trial_is_not_one_that_was_pruned(search):
    one = search(WAVE, prunes=True)
    wave = one.ask()
    for place in range(WAVE):
        one.hopeless(place, 1, 0.0)
    one.tell([None, *(0.0 for _ in wave[1:])])
    again = search(WAVE, prunes=True)
    again.ask()
    assert not again.hopeless(0, 1, 0.0)


def test_a_search_for_less(search):
    one = search(4, higher=False)
    one.tell([3.0, 1.0, 2.0, 4.0][: len(one.ask())])
    assert one.study.best_value == 1.0


def test_in_a_file(tmp_path, capfd):
    """Two searches on one file are one search, and Optuna says nothing."""
    optuna.logging.set_verbosity(optuna.logging.INFO)
    points = []
    for budget in (4, 6):
        storage = storage_in(tmp_path / "optuna.db")
        one = SampledSearch(
            AXES, START, budget, higher_is_better=True, sampler="tpe", prunes=True, name="s", storage=storage
        )
        points.append(finish(one))
        storage.engine.dispose()
    assert points[1][:4] == points[0] and len(points[1]) == 6
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense", "cannot be opened"),
        ("postgresql+nodriver://localhost/x", "cannot be opened|needs a package"),
        ("sqlite:////nowhere/at/all.db", "cannot be opened"),
    ],
)
def test_a_storage_that_cannot_be_opened(url, message):
    with pytest.raises(EquipoiseError, match=message):
        storage_at(url)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no database at all" * 100, "it is no database; remove it"),
        (b"SQLite format 3\0" + b"\xe3" * 5000, "remove it"),
    ],
)
def test_a_damaged_database_is_a_sentence(tmp_path, content, message):
    path = tmp_path / "optuna.db"
    path.write_bytes(content)
    with pytest.raises(EquipoiseError, match=f"the database of trials, {path}, failed: .*{message}"), explained(path):
        storage_in(path)
