"""A method's way through its budget: which runs are due when, with a search and a store that stand for real ones."""

import pytest

from equipoise.core import EquipoiseError
from equipoise.store import Record
from equipoise.store.underway import note_waiting
from equipoise.study.tune.aim import Aim
from equipoise.study.tune.method import MethodTuning
from equipoise.study.tune.space import space_of
from equipoise.study.tune.write import state
from equipoise.train import Recipe

RECIPE = Recipe.make({"model": "cnn_small", "epochs": 1}, {"name": "blobs"})


class Waves:
    """Proposes learning rates; drops those that are asked to be dropped after a number of runs."""

    def __init__(self, *waves, drops=None):
        self.waves, self.drops, self.prunes = list(waves), drops or {}, drops is not None
        self.told, self.wave = [], []

    def ask(self):
        self.wave = self.waves.pop(0) if self.waves else []
        return [{"lr": lr} for lr in self.wave]

    def hopeless(self, place, runs, value):
        return self.drops.get(self.wave[place]) == runs

    def tell(self, values):
        self.told.append(values)


class Shelf:
    """A store of runs whose score is their learning rate and a tenth of their seed, reached in even steps."""

    def __init__(self, folder=None):
        self.runs, self.folder = {}, folder

    def do(self, run, failed=False, until=None):
        value = run.plan.lr + run.seed / 10
        curve = [value * (epoch + 1) / run.plan.epochs for epoch in range(run.plan.epochs)]
        if until is not None and not failed:
            self.scratch(run.key).mkdir(parents=True)
            note_waiting(self, run.key, {"train_loss": [1.0] * until, "valid_accuracy": curve[:until]})
            return
        self.runs[run.key] = Record(
            key=run.key, recipe=run.to_dict(), state="failed" if failed else "finished", class_names=(),
            class_counts=(), data="", parameters=0, seconds=1.0, ended="", versions={}, device="",
            metrics={"valid_accuracy": value}, curves={"valid_accuracy": curve},
            error="no" if failed else None,
        )  # fmt: skip

    def scratch(self, key):
        return self.folder / key

    def has(self, key):
        return key in self.runs

    def get(self, key):
        return self.runs[key]


def tuning(search, seeds=(0, 1, 2), budget=2, race=False, recipe=RECIPE, halves=True):
    return MethodTuning("m", space_of(recipe), search, seeds, Aim("accuracy"), budget, race=race, halves=halves)


def due(method, shelf):
    return [(due.run.plan.lr, due.run.seed) for due in method.due(shelf)]


def do_all(method, shelf, fails=()):
    runs = [(due.run, due.until) for due in method.due(shelf)]
    for run, until in runs:
        shelf.do(run, failed=(run.plan.lr, run.seed) in fails, until=until)
    return [(run.plan.lr, run.seed, *([until] if until else [])) for run, until in runs]


def test_without_pruning_all_seeds_of_a_wave_are_due_at_once():
    method, shelf = tuning(Waves([0.1, 0.2])), Shelf()
    assert do_all(method, shelf) == [(lr, seed) for lr in (0.1, 0.2) for seed in (0, 1, 2)]
    assert due(method, shelf) == [] and method.runs_done(shelf) == 6
    assert method.search.told == [[pytest.approx(0.2), pytest.approx(0.3)]]  # of lr + seed / 10, over three seeds


def test_a_wave_is_told_when_its_last_run_is_there():
    method, shelf = tuning(Waves([0.1], [0.2]), seeds=(0,)), Shelf()
    assert due(method, shelf) == due(method, shelf) == [(0.1, 0)] and not method.search.told
    assert do_all(method, shelf) == [(0.1, 0)] and do_all(method, shelf) == [(0.2, 0)]
    assert due(method, shelf) == [] and method.search.told == [[0.1], [0.2]]


def test_pruning_goes_seed_by_seed_and_a_dropped_trial_counts():
    method, shelf = tuning(Waves([0.1, 0.2, 0.3], drops={0.1: 1, 0.2: 2}), budget=3), Shelf()
    assert do_all(method, shelf) == [(0.1, 0), (0.2, 0), (0.3, 0)]
    assert do_all(method, shelf) == [(0.2, 1), (0.3, 1)]
    assert do_all(method, shelf) == [(0.3, 2)]
    assert due(method, shelf) == [] and len(method.trials) == 3
    assert [trial.pruned for trial in method.trials] == [True, True, False]
    assert [len(trial.score.by_seed) for trial in method.trials] == [1, 2, 3]
    assert method.search.told == [[None, None, pytest.approx(0.4)]]
    assert method.runs_done(shelf) == 9  # those that will never be done are done with


def test_a_trial_of_which_a_run_failed_gets_no_more_runs_where_they_come_one_by_one():
    method, shelf = tuning(Waves([0.1, 0.2], drops={})), Shelf()
    do_all(method, shelf, fails={(0.1, 0)})
    assert do_all(method, shelf) == [(0.2, 1)]
    do_all(method, shelf)
    assert due(method, shelf) == [] and [trial.finished for trial in method.trials] == [False, True]
    assert method.trials[0].score.error == "no"


def test_a_race_goes_seed_by_seed_and_ends_what_is_surely_worse():
    """Scores have no noise here, so the worse is known for sure as soon as two seeds have shown that."""
    method, shelf = tuning(Waves([0.1, 0.2], [0.15]), budget=3, race=True), Shelf()
    assert do_all(method, shelf) == [(0.1, 0), (0.2, 0)]
    assert do_all(method, shelf) == [(0.1, 1), (0.2, 1)]
    assert do_all(method, shelf) == [(0.2, 2)]
    assert do_all(method, shelf) == [(0.15, 0)]
    assert due(method, shelf) == [] and [trial.finished for trial in method.trials] == [False, True, False]
    assert method.search.told == [[None, pytest.approx(0.3)], [None]]


def test_while_the_noise_is_unknown_the_better_half_goes_ahead():
    rates = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    method, shelf = tuning(Waves(rates), budget=8, race=True), Shelf()
    assert do_all(method, shelf) == [(lr, 0) for lr in rates]
    assert do_all(method, shelf) == [(lr, 1) for lr in rates[4:]]
    assert do_all(method, shelf) == [(0.8, 2)] and due(method, shelf) == []
    assert [len(trial.score.by_seed) for trial in method.trials] == [1, 1, 1, 1, 2, 2, 2, 3]


LONG = Recipe.make({"model": "cnn_small", "epochs": 9}, {"name": "blobs"})


def test_a_race_stops_runs_half_way(tmp_path):
    """Curves are straight here: what gains less than others in the first half cannot catch up in the second."""
    rates = [0.1, 0.2, 0.3, 0.4]
    method, shelf = tuning(Waves(rates, [0.05]), budget=5, race=True, recipe=LONG), Shelf(tmp_path)
    assert do_all(method, shelf) == [(lr, 0) for lr in rates]
    assert do_all(method, shelf) == [(lr, 1) for lr in rates[1:]]
    assert do_all(method, shelf) == [(0.4, 2, 4)]
    assert do_all(method, shelf) == [(0.4, 2)]
    assert do_all(method, shelf) == [(0.05, 0, 4)]
    assert due(method, shelf) == [] and [trial.finished for trial in method.trials] == [False] * 3 + [True, False]
    assert [state(trial) for trial in method.trials] == ["pruned"] * 3 + ["finished", "pruned"]

    again = tuning(Waves(rates, [0.05]), budget=5, race=True, recipe=LONG)
    assert again.due(shelf) == [] and again.trials == method.trials  # nothing is done twice


def test_a_race_of_one_seed_goes_by_epochs_alone(tmp_path):
    method, shelf = tuning(Waves([0.4, 0.5], [0.2, 0.6]), (0,), 4, race=True, recipe=LONG), Shelf(tmp_path)
    assert do_all(method, shelf) == [(0.4, 0), (0.5, 0)]
    assert do_all(method, shelf) == [(0.2, 0, 4), (0.6, 0, 4)]
    assert do_all(method, shelf) == [(0.6, 0)]
    assert due(method, shelf) == [] and [trial.finished for trial in method.trials] == [True, True, False, True]


def test_a_run_that_fails_before_its_half_ends_its_trial(tmp_path):
    method, shelf = tuning(Waves([0.4], [0.5, 0.6]), (0,), 3, race=True, recipe=LONG), Shelf(tmp_path)
    do_all(method, shelf)
    assert do_all(method, shelf, fails={(0.6, 0)}) == [(0.5, 0, 4), (0.6, 0, 4)]
    assert do_all(method, shelf) == [(0.5, 0)] and due(method, shelf) == []
    assert [state(trial) for trial in method.trials] == ["finished", "finished", "failed"]


@pytest.mark.parametrize("options", [{"posthoc": "logit_adjust(tau=1.0)"}, {"stage": "crt"}, {"epochs": 3}])
def test_what_has_no_curve_to_go_by_is_not_stopped_half_way(options):
    recipe = Recipe.make({"model": "cnn_small", "epochs": 9, **options}, {"name": "blobs"})
    method, shelf = tuning(Waves([0.4], [0.1]), (0,), race=True, recipe=recipe), Shelf()
    assert do_all(method, shelf) == [(0.4, 0)] and do_all(method, shelf) == [(0.1, 0)]


def test_halves_can_be_left_out():
    method, shelf = tuning(Waves([0.4], [0.1]), (0,), race=True, recipe=LONG, halves=False), Shelf()
    assert do_all(method, shelf) == [(0.4, 0)] and do_all(method, shelf) == [(0.1, 0)]


def test_what_the_store_has_is_not_due():
    first, shelf = tuning(Waves([0.1], [0.2])), Shelf()
    do_all(first, shelf)
    again = tuning(Waves([0.1], [0.2]))
    assert due(again, shelf) == [(0.2, seed) for seed in (0, 1, 2)] and len(again.trials) == 1


def test_a_search_that_ends_before_the_budget_is_told():
    method, shelf = tuning(Waves([0.1]), budget=3), Shelf()
    do_all(method, shelf)
    with pytest.raises(EquipoiseError, match="m has only 1 different trial, not the 3"):
        method.due(shelf)
