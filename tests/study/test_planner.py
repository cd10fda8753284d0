"""Before a study runs: what it costs, what it can show, and in which words."""

import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console
from scipy import stats

from equipoise.analysis import compare
from equipoise.analysis.statistics.equivalence import pairs_for_equality
from equipoise.analysis.statistics.power import claim_power, detectable_effect, pairs_needed
from equipoise.core import EquipoiseError
from equipoise.data import cache
from equipoise.store import Record, Store
from equipoise.study import Budget, RunTimes, Study, find_spread, forecast, jobs_of, new_rounds, print_looks, print_plan
from equipoise.study.plan import cost as cost_file
from equipoise.study.plan.cost import START_SECONDS, Cost, measured_seconds
from equipoise.study.plan.plan import Spread
from equipoise.study.run.child import Failed
from equipoise.study.run.hardware import device_name

CPU = torch.device("cpu")
WITHOUT_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, WITHOUT_GPU])]
PLAIN = {
    "baseline": "plain",
    "seeds": 8,
    "task": {"name": "blobs", "n_max": 60},
    "base": {"model": "cnn_small(width=4)", "epochs": 3, "batch_size": 16},
    "methods": {"plain": {}, "focal": {"loss": "focal"}, "adjusted": {"posthoc": "logit_adjust"}},
}


@pytest.fixture
def study():
    return Study.from_dict(PLAIN)


def put(store, recipe, seconds, scores=(0, 0), **changes):
    """A run whose balanced accuracy on validation data is the mean of 1, 1 and scores[0] of scores[1]."""
    record = Record(
        recipe.key, recipe.to_dict(), "finished", ("a", "b", "c"), (9, 5, 2), "data", 10, seconds,
        "2026-01-01T00:00:00+00:00", {}, device_name(CPU),
    )  # fmt: skip
    right, total = scores
    labels = np.array([0, 2] + [1] * total)
    logits = np.eye(3, dtype=np.float32)[np.array([0, 2] + [1] * right + [0] * (total - right))]
    store.put(replace(record, **changes), {"valid": {"logits": logits, "labels": labels}})


# -- cost ------------------------------------------------------------------------------------------------------------


def test_times_are_those_of_other_seeds(study, store, monkeypatch):
    store.create()
    for seed, seconds in ((0, 10.0), (1, 20.0)):
        put(store, replace(study.methods["plain"], seed=seed), seconds)
        put(store, replace(study.methods["adjusted"], seed=seed), 2.0)
    put(store, replace(study.methods["focal"], seed=0), 99.0, device="NVIDIA H200")
    put(store, replace(study.methods["focal"], seed=1), 99.0, state="failed", error="x")
    monkeypatch.setattr(cost_file, "ask", lambda *asked: 7.0)
    clock = RunTimes(store, CPU)
    assert [clock.seconds(study.methods[name]) for name in ("plain", "focal", "adjusted")] == [15.0, 7.0, 2.0]
    cost = clock.cost(jobs_of(recipe for _, recipe in study.recipes()), workers=2)
    # seeds 2 to 7 of both trainings: plain with what corrects it 17 s; the failed and the foreign run count as done
    assert sorted(cost.seconds) == [7.0] * 6 + [17.0] * 6
    assert cost.wall == START_SECONDS + (6 * 7 + 6 * 17) / 2


def test_quick_measures_one_recipe_for_all(study, store, monkeypatch):
    measured = []
    monkeypatch.setattr(cost_file, "ask", lambda *asked: measured.append(asked) or 5.0)
    jobs = jobs_of(recipe for _, recipe in study.recipes())
    assert set(RunTimes(store, CPU, quick=True).cost(jobs, 1).seconds) == {5.0} and len(measured) == 1
    RunTimes(store, CPU).cost(jobs, 1)
    assert len(measured) == 3
    assert not store.path.exists()


def test_what_other_machines_train_is_not_measured_here(study, store, monkeypatch):
    monkeypatch.setattr(cost_file, "ask", lambda *asked: pytest.fail("this machine tells nothing about others"))
    said = forecast(study, RunTimes(store, CPU, quick=True, elsewhere=True), 2)
    assert "16 trainings to do, with 2 workers" in said and "their first runs will tell" in said


def test_the_wall_is_never_below_the_longest_run():
    assert Cost((8.0, 1.0), workers=4).wall == START_SECONDS + 8
    assert Cost((2.0,) * 8, workers=4).wall == START_SECONDS + 4
    assert Cost((2.0,) * 8, workers=4, before=30.0).wall == START_SECONDS + 34
    assert Cost((), workers=4).wall == 0


def test_a_run_that_will_diverge_takes_its_time_too(study, monkeypatch):
    monkeypatch.setattr(cost_file, "MEASURED_SECONDS", 0.02)
    recipe = study.methods["plain"]
    wild = replace(recipe, plan=replace(recipe.plan, lr=1e6, warmup=0.0, batch_size=8))
    assert 0 < measured_seconds(wild, CPU) < 60


def test_a_measurement_leaves_its_images_to_the_trainings(study, tmp_path, monkeypatch):
    monkeypatch.setattr(cost_file, "MEASURED_SECONDS", 0.02)
    monkeypatch.setattr(cache, "WORTH_SHARING", 0)
    measured_seconds(study.methods["plain"], CPU, tmp_path / "shared")
    assert [path.name for path in tmp_path.glob("shared/*/train.npy")] == ["train.npy"]


@pytest.mark.parametrize("device", DEVICES)
def test_a_training_of_two_steps_can_be_measured(study, device, monkeypatch):
    monkeypatch.setattr(cost_file, "MEASURED_SECONDS", 0.02)
    recipe = study.methods["plain"]
    short = replace(recipe, plan=replace(recipe.plan, epochs=2, batch_size=10**6))
    assert 0 < measured_seconds(short, torch.device(device)) < 60
    if device == "cuda":
        torch.cuda.synchronize()  # a wrong index on the device is told here


def test_what_cannot_be_measured_stops_nothing(study, store, monkeypatch):
    asked = []

    def kills(*given):
        asked.append(given)
        raise Failed("its worker process was killed by SIGILL (illegal instruction)")

    monkeypatch.setattr(cost_file, "ask", kills)
    clock = RunTimes(store, CPU, quick=True)
    said = forecast(study, clock, 2)
    assert "16 trainings to do, with 2 workers" in said and "killed by SIGILL" in said and "nan" not in said
    assert len(asked) == 1, "once is enough for a quick look"
    console = Console(width=200, record=True, file=io.StringIO())
    print_plan(study, RunTimes(store, CPU), 2, Spread(0.01, "assumed"), console)
    text = console.export_text()
    assert text.count("not known") == 2 and "nan" not in text
    assert np.isnan(Cost((1.0, np.nan), 2).wall)


def test_one_is_said_in_the_singular(study, store, monkeypatch):
    monkeypatch.setattr(cost_file, "ask", lambda *asked: 1.0)
    plain = {name: study.methods[name] for name in ("plain", "focal")}
    console = Console(width=200, record=True, file=io.StringIO())
    print_plan(replace(study, seeds=(0,), methods=plain), RunTimes(store, CPU), 1, Spread(0.01, "assumed"), console)
    text = console.export_text()
    assert "1 method against plain" in text and "with 1 seed." in text and "with 1 worker on" in text
    assert not re.search(r"\b1 (methods|seeds|trainings|workers|runs)\b", text)


@pytest.mark.parametrize("options", [{}, {"stage": "crt"}, {"procedure": "bbn"}, {"mix": "mfw"}], ids=str)
def test_a_few_steps_are_measured_without_the_test_set(study, options, monkeypatch):
    tests = []
    load = cost_file.load_task
    monkeypatch.setattr(cost_file, "MEASURED_SECONDS", 0.02)
    monkeypatch.setattr(cost_file, "load_task", lambda *a, **k: tests.append(load(*a, **k)) or tests[-1])
    recipe = Study.from_dict({**PLAIN, "methods": {"plain": {}, "x": options}}).methods["x"]
    seconds = measured_seconds(recipe, CPU)
    assert 0.001 < seconds < 60 and len(tests[0].test) == 0


def test_twice_the_epochs_cost_about_twice(study, monkeypatch):
    ticks = iter(range(10**6))
    monkeypatch.setattr(cost_file.time, "perf_counter", lambda: float(next(ticks)))  # each step takes a second
    recipe = study.methods["plain"]
    double = replace(recipe, plan=replace(recipe.plan, epochs=6))
    assert measured_seconds(double, CPU) == 2 * measured_seconds(recipe, CPU)


# -- spread ----------------------------------------------------------------------------------------------------------


def test_a_spread_as_stated_or_assumed(study, store):
    assert find_spread(study, store, stated=2.0).value == 0.02
    assumed = find_spread(study, store)
    assert assumed.value == 0.01 and "an assumption" in assumed.source
    assert find_spread(replace(study, metric="nll"), store, stated=0.1).value == 0.1


def test_a_spread_of_validation_scores(study, store):
    store.create()
    right = {"plain": [5, 5, 5, 5], "focal": [6, 8, 7, 7]}
    for name, counts in right.items():
        for seed, count in enumerate(counts):
            put(store, replace(study.methods[name], seed=seed), 1.0, (count, 10))
    found = find_spread(study, store)
    assert found.value == pytest.approx(np.std([1, 3, 2, 2], ddof=1) / 10 / 3)
    assert "validation data" in found.source
    assert find_spread(study, Store(store.path / "none"), pilot=store) == found


def test_a_spread_of_a_pilot_that_was_reported(study, store):
    rng = np.random.default_rng(0)
    plain = rng.normal(size=7)
    verdict = compare({"plain": plain, "a": plain + rng.normal(0, 1, 7), "b": plain + rng.normal(0, 3, 7)}, "plain")
    store.create().write_json("verdict.json", verdict.to_dict())
    halves = {m.name: (m.diff_high - m.diff_low) / 2 for m in verdict.methods if m.standing != "baseline"}
    spreads = [half * np.sqrt(7) / stats.t.ppf(0.975, 6) for half in halves.values()]
    found = find_spread(study, Store(store.path / "none"), pilot=store)
    assert found.value == pytest.approx(np.sqrt(np.mean(np.square(spreads)))) and "test set" in found.source
    store.write_json("verdict.json", json.loads(json.dumps({**verdict.to_dict(), "metric": "nll"})))
    with pytest.raises(EquipoiseError, match="has no 3 pairs of finished runs on balanced_accuracy"):
        find_spread(study, Store(store.path / "none"), pilot=store)


# -- words -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def clock(store, monkeypatch):
    monkeypatch.setattr(cost_file, "ask", lambda *asked: 30.0)
    return RunTimes(store, CPU)


def test_a_forecast_in_two_sentences(study, clock):
    said = forecast(study, clock, workers=2)
    effect = detectable_effect(8, 0.8, 0.05, 2)
    assert said.startswith("16 trainings to do, about 4 min with 2 workers on CPU")
    assert said.endswith(
        f"a difference of {effect:.1f} times its spread from seed to seed has a chance of 80 % to be shown."
    )
    few = forecast(replace(study, seeds=(0, 1)), clock, workers=1)
    assert few.endswith("2 seeds cannot support any claim about 3 methods; 7 can.")


def test_nothing_is_said_where_nothing_is_to_do(study, clock, store):
    for _, recipe in study.recipes():
        put(store.create(), recipe, 1.0)
    assert forecast(study, clock, 1) == ""


def printed(show, *arguments):
    console = Console(record=True, width=120)
    show(*arguments, console)
    return console.export_text()


def test_the_plan_in_words(study, clock):
    text = printed(print_plan, study, clock, 2, Spread(0.02, "as you say"))
    assert "2 methods against plain on balanced accuracy, with 8 seeds." in text
    costs = dict(line.split(maxsplit=1) for line in text.splitlines() if line.startswith(("plain", "focal", "adj")))
    assert {name: cost.strip() for name, cost in costs.items()} == {
        "plain": "30 s",
        "focal": "30 s",
        "adjusted": "nothing more",
    }
    assert "Differences vary from seed to seed by 2.00 points: as you say." in text
    row = next(line for line in text.splitlines() if line.strip().startswith("3.00 points"))  # 1.5 times the spread
    needed = str(
        pairs_needed(1.5, 0.8, 0.05, 2)
    )  # with two methods choosing has one pair more, and needs a claim first
    assert row.split() == ["3.00", "points", f"{100 * claim_power(8, 1.5, 0.05, 2):.0f}", "%",
                           needed, "seeds", needed, "seeds"]  # fmt: skip
    assert "the chance of any false claim is at most 5 %" in text


def test_choosing_the_best_is_a_question_of_its_own(study, clock):
    methods = {**study.methods, **{f"more{i}": study.methods["focal"] for i in range(5)}}
    text = printed(print_plan, replace(study, methods=methods), clock, 2, Spread(0.02, "as you say"))
    row = next(line for line in text.splitlines() if line.strip().startswith("3.00 points"))
    beat, choose = (
        pairs_needed(1.5, 0.8, 0.05, tests) for tests in (7, 21)
    )  # of 7 methods with the baseline, or pairs
    assert beat < choose and row.split()[-4:] == [str(beat), "seeds", str(choose), "seeds"]


def test_the_plan_of_a_study_that_calls_small_differences_equal(study, clock):
    text = printed(print_plan, replace(study, equivalent_within=0.5), clock, 2, Spread(0.005, "as you say"))
    needed = pairs_for_equality(1.0, 0.8, 0.05, comparisons=2)
    assert f"A method that equals plain is shown to be so, within 0.50 points, by {needed} seeds (80 %)." in text
    wide = printed(print_plan, replace(study, equivalent_within=0.5), clock, 2, Spread(1.0, "as you say"))
    assert "more seeds than anyone has" in wide
    assert "equals" not in printed(print_plan, study, clock, 2, Spread(0.005, "as you say"))


def test_the_plan_of_too_few_seeds_speaks_of_enough(study, clock):
    text = printed(print_plan, replace(study, seeds=(0, 1, 2)), clock, 2, Spread(0.01, "as you say"))
    assert "3 seeds cannot support any claim about 3 methods; 7 can." in text and "is shown by 7 seeds" in text


def test_the_rounds_in_words(study, clock):
    rounds = new_rounds(study, Budget(max_runs=40))
    text = printed(print_looks, study, rounds, clock, 2, Spread(0.01, "as you say"))
    rows = [line.split() for line in text.splitlines() if line.split()[:1] in [["1"], ["2"], ["3"], ["4"], ["5"]]]
    assert [int(row[1]) for row in rows] == list(rounds.looks.seeds)
    assert [int(row[2]) for row in rows] == [2 * n for n in rounds.looks.seeds]
    for row, n, share in zip(rows, rounds.looks.seeds, rounds.looks.shares, strict=True):
        assert row[-2:] == [f"{detectable_effect(n, 0.8, 0.05 * share, 2):.2f}", "points"]
