"""Scores from validation curves, the choice among trials, sensitivity, and the study that is written."""

import csv
import io
import math
import tomllib
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from equipoise.analysis.statistics.priority import read_priority
from equipoise.core import EquipoiseError
from equipoise.store import Record
from equipoise.store.sensitivity import TriedValue
from equipoise.study import Study, Tuning
from equipoise.study.tune import trial as trial_module
from equipoise.study.tune.aim import Aim
from equipoise.study.tune.axis import Axis
from equipoise.study.tune.outcome import MethodOutcome, Outcome, best_trial, sensitivity, tuned_study
from equipoise.study.tune.space import placed
from equipoise.study.tune.trial import Score, Trial
from equipoise.study.tune.write import print_outcome, trials_csv, tuned_toml
from equipoise.train import Recipe


def recipe(**options):
    return Recipe.make({"model": "cnn_small", "epochs": 3, **options}, {"name": "blobs", "test": False})


def record(values, metric="accuracy", error=None, **options):
    """A run with this validation curve."""
    curves = {} if options.get("posthoc") else {f"valid_{metric}": values}
    return Record(
        key="k", recipe=recipe(**options).to_dict(), state="failed" if error else "finished", class_names=(),
        class_counts=(), data="", parameters=0, seconds=2.0, ended="", versions={}, device="",
        metrics={f"valid_{metric}": values[-1]}, curves=curves, error=error,
    )  # fmt: skip


def score(records, metric):
    return trial_module.score(records, Aim(metric), None)


def test_the_best_epoch_of_the_mean_curve():
    """By hand: means 0.3, 0.5, 0.45; each run alone would stop elsewhere."""
    found = score([record([0.2, 0.6, 0.1]), record([0.4, 0.4, 0.8])], "accuracy")
    assert found.epoch == 2 and found.value == 0.5 and found.by_seed == (0.6, 0.4) and found.seconds == 4.0
    assert found.spread == pytest.approx(math.sqrt(2 * 0.1**2))  # n - 1
    assert score([record([0.2, 0.6, 0.6])], "accuracy") == Score(0.6, (0.6,), 2, 2.0)
    assert score([record([0.5, 0.2, 0.3], "nll")], "nll").epoch == 2  # less is better


def test_what_has_no_epochs_to_choose_from_is_scored_at_its_end():
    for options in ({"posthoc": "temperature"}, {"stage": "crt"}):
        found = score([record([0.9, 0.1], **options)], "accuracy")
        assert found.value == 0.1 and found.epoch is None


def test_a_trial_with_a_failed_run_has_no_score():
    found = score([record([0.5]), record([0.5], error="boom")], "accuracy")
    assert found.value is None and found.error == "boom"


def test_a_metric_that_is_not_a_number():
    assert score([record([math.nan, 0.3, math.nan])], "accuracy").epoch == 2
    assert "not defined" in score([record([math.nan] * 3)], "accuracy").error
    assert "validation set is empty" in score([record([0.5], "nll")], "accuracy").error


AXES = {"lr": Axis((0.01, 0.1, 1.0), "log"), "momentum": Axis((0.8, 0.9), high=0.9)}


def trial(number, lr, momentum, value, seed_values=None, **changes):
    point = {"lr": lr, "momentum": momentum}
    made = Score(value, tuple(seed_values or (value,)), 2) if value is not None else Score(None, error="x\nboom")
    return Trial(number, point, placed(recipe(), point), made, **changes)


TRIALS = [
    trial(0, 0.1, 0.9, 0.5),
    trial(1, 1.0, 0.9, 0.7),
    trial(2, 0.1, 0.8, 0.6),
    trial(3, 1.0, 0.8, 0.7),
    trial(4, 0.01, 0.9, 0.99, pruned=True),
    trial(5, 0.01, 0.8, None),
]


@pytest.fixture
def outcome():
    study = Study("s", "?", "plain", "accuracy", (0, 1), {"plain": recipe(), "other": recipe()}, Tuning(trials=6))
    methods = [MethodOutcome(name, AXES, TRIALS, best_trial(TRIALS, "accuracy")) for name in ("plain", "other")]
    return Outcome(study, methods)


def test_the_first_of_the_best_finished_trials_is_chosen(outcome):
    assert best_trial(TRIALS, "accuracy").number == 1
    assert best_trial(TRIALS, "nll").number == 0
    assert best_trial(TRIALS[4:], "accuracy") is None


def test_the_edge_of_what_was_tried_is_told_unless_it_is_a_limit(outcome):
    assert outcome.methods[0].edges == ["lr"]
    inside = [*TRIALS, trial(6, 10.0, 0.9, 0.1)]
    assert MethodOutcome("m", AXES, inside, best_trial(inside, "accuracy")).edges == []


def test_sensitivity(outcome):
    found = sensitivity(outcome)
    assert found.metric == "accuracy" and found.higher_is_better
    lr, momentum = found.methods[0].dials
    assert lr.dial == "lr" and lr.scale == "log" and lr.chosen == 1.0 and lr.at_edge
    assert lr.points == (
        TriedValue(value=0.1, marginal=0.6, slice=0.5, trials=2),
        TriedValue(value=1.0, marginal=0.7, slice=0.7, trials=2),
    )  # the pruned and the failed trial are not there
    assert [(p.value, p.marginal, p.slice) for p in momentum.points] == [(0.8, 0.7, 0.7), (0.9, 0.7, 0.7)]


def test_the_written_study_is_the_chosen_recipes_and_sees_the_test_set(outcome, tmp_path):
    path = tmp_path / "tuned.toml"
    path.write_text(tuned_toml(outcome))
    read = Study.from_toml(path)
    assert read.methods == tuned_study(outcome).methods and read.name == "s_tuned" and read.seeds == (0, 1)
    assert read.metric == "accuracy" and read.to_dict()["tuned"] == {
        "study": "s", "trials": 6, "sampler": "grid", "runs": 3, "refit": False,
    }  # fmt: skip
    assert read.methods["plain"] == placed(
        Recipe.make({"model": "cnn_small", "epochs": 3}, {"name": "blobs"}), {"lr": 1.0, "momentum": 0.9}
    )


@pytest.mark.parametrize(
    "priority",
    ["worst_class", "natural", {"prior": {"a b": 1.0, "c": 2.5}}, {"prior": [1, 2]}, {"costs": {"a": {"b": 3.0}}},
     {"costs": [[0, 1], [5.5, 0]], "prior": "natural"}],
)  # fmt: skip
def test_a_priority_is_written_as_it_was_read(outcome, tmp_path, priority):
    asked = read_priority(priority)
    study = replace(outcome.study, metric=asked.metric, priority=asked)
    path = tmp_path / "tuned.toml"
    path.write_text(tuned_toml(Outcome(study, outcome.methods)))
    assert Study.from_toml(path).priority == asked


def test_what_the_study_asks_for_is_asked_for_again(outcome, tmp_path):
    asked = replace(outcome.study, accept_short_training=True, progress=True)
    (tmp_path / "tuned.toml").write_text(tuned_toml(replace(outcome, study=asked)))
    written = Study.from_toml(tmp_path / "tuned.toml")
    assert written.accept_short_training and written.progress
    assert "accept_short_training" not in tuned_toml(outcome)


def test_a_priority_without_a_curve_is_scored_on_the_stored_validation_outputs():
    """Two of class 0 right, one of class 1 wrong at a cost of 4: mean over classes (0 + 4) / 2."""

    class Validation:
        def valid(self, key):
            return {"logits": np.array([[2.0, 0], [2, 0], [2, 0]]), "labels": np.array([0, 0, 1])}

    made = replace(record([0.5, 0.6, 0.7]), class_counts=(5, 5), class_names=("a", "b"))
    aim = Aim("cost", read_priority({"costs": {"b": {"a": 4.0}}}))
    assert trial_module.score([made], aim, Validation()) == Score(2.0, (2.0,), None, 2.0)


def test_methods_of_any_name_and_kind_survive_being_written(outcome, tmp_path):
    recipes = {
        'a "quoted" ü.name': recipe(loss="ldam", mix="mfw", ema=0.9),
        "bare-name": recipe(posthoc="logit_adjust", schedule="steps(at=(0.5, 0.9))", weight_decay=1e-5),
        "third": recipe(stage="crt", norm="ghost(ghost_size=8)"),
        "without its companion": recipe(procedure="domain_adaptation", weighting="none"),
    }
    methods = [
        MethodOutcome(name, {}, [t], t) for name, t in ((n, Trial(0, {}, r, Score(0.5))) for n, r in recipes.items())
    ]
    study = replace(outcome.study, methods=recipes, question='why "so"?\n', baseline="third", seeds=(4, 2))
    path = tmp_path / "tuned.toml"
    path.write_text(tuned_toml(Outcome(study, methods)))
    read = Study.from_toml(path)
    on_test = {n: replace(r, task=replace(r.task, test=True)) for n, r in recipes.items()}
    assert dict(read.methods) == on_test and read.question == study.question and read.seeds == (4, 2)
    assert "model" not in tomllib.loads(path.read_text())["methods"]["third"]  # what all share is said once


def test_refit_gives_the_validation_images_back_and_stops_where_it_was_best(outcome):
    study = replace(outcome.study, tuning=Tuning(refit=True))
    made = tuned_study(Outcome(study, outcome.methods)).methods["plain"]
    assert made.task.valid == 0 and made.plan.epochs == 2 and made.plan.warmup == 0.5
    held = placed(recipe(warmup=2.5), {})
    late = Trial(0, {}, replace(held, task=replace(held.task, valid_per_class=3)), Score(0.5, (0.5,), 1))
    made = tuned_study(Outcome(replace(study, methods={"m": held}), [MethodOutcome("m", {}, [late], late)])).methods[
        "m"
    ]
    assert made.task.valid_per_class is None and made.plan.epochs == 1 and made.plan.warmup == 1 / 6
    whole = Trial(0, {}, recipe(stage="crt"), Score(0.5, (0.5,), None))
    made = tuned_study(Outcome(replace(study, methods={"m": held}), [MethodOutcome("m", {}, [whole], whole)]))
    assert made.methods["m"].plan.epochs == 3


def test_a_method_without_a_finished_trial_is_told(outcome):
    lost = Outcome(outcome.study, [MethodOutcome("plain", AXES, TRIALS[5:], None)])
    with pytest.raises(EquipoiseError, match="no trial of plain finished.*boom"):
        tuned_toml(lost)
    assert sensitivity(lost).methods[0].best is None
    assert "failed" in trials_csv(lost)


def test_every_trial_is_a_row(outcome):
    rows = list(csv.DictReader(io.StringIO(trials_csv(outcome))))
    assert len(rows) == 12
    assert [row["state"] for row in rows[:6]] == ["finished"] * 4 + ["pruned", "failed"]
    assert [row["chosen"] for row in rows[:6]].count("True") == 1 and rows[1]["chosen"] == "True"
    assert rows[1]["lr"] == "1.0" and rows[1]["valid_accuracy"] == "0.7" and rows[1]["key"] == TRIALS[1].recipe.key
    assert rows[5]["valid_accuracy"] == ""


def test_the_table_and_what_to_mistrust(outcome):
    console = Console(width=200, file=io.StringIO())
    print_outcome(outcome, console)
    text = console.file.getvalue()
    assert "70.0 %" in text and "lr = 1.0, momentum = 0.9" in text
    assert "plain: the best lr is at the edge of what was tried; try values past 1.0" in text
    assert "1 of 6 trials failed: boom" in text and "1 of 6 trials were pruned" in text
