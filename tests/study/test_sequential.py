"""Seeds in rounds: what is planned, run, dropped and written, with runs that are made up instead of trained."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console

from equipoise.analysis.statistics.sequential import Rounds
from equipoise.core import EquipoiseError
from equipoise.report import collect, seal_notes, still_to_do
from equipoise.store import Record, Store
from equipoise.study import (
    Budget,
    How,
    Interrupted,
    Listener,
    OnTerminal,
    Study,
    jobs_of,
    new_rounds,
    run_study,
    run_until_decided,
)
from equipoise.study.plan import rounds as sequential
from equipoise.study.scores import paired_scores

CPU = torch.device("cpu")
PLAIN = {
    "baseline": "plain",
    "seeds": [5, 3],
    "task": {"name": "blobs", "n_max": 60},
    "base": {"model": "cnn_small(width=4)", "epochs": 2},
    "methods": {"plain": {}, "good": {"loss": "focal"}, "bad": {"lr": 0.5}, "adjusted": {"posthoc": "logit_adjust"}},
}
# how many of 40 validation images, and of 200 test images, of the second class are recognised, in the mean
MEANS = {"plain": (20, 100), "good": (30, 150), "bad": (10, 50), "adjusted": (20, 100)}


def outputs(total, right, rng):
    """Logits of three classes: the first and third are always right, of the second so many."""
    labels = np.repeat([0, 1, 2], total)
    logits = np.eye(3, dtype=np.float32)[labels]
    wrong = rng.permutation(np.arange(total, 2 * total))[: total - right]
    logits[wrong] = [1, 0, 0]
    return {"logits": logits, "labels": labels}


def made_up(store, name, recipe, seconds=1.0):
    rng = np.random.default_rng([recipe.seed, *name.encode()])
    valid, test = (round(mean + rng.normal(0, mean / 30)) for mean in MEANS[name])
    record = Record(
        recipe.key, recipe.to_dict(), "finished", ("a", "b", "c"), (9, 5, 2), "data", 10, seconds,
        "2026-01-01T00:00:00+00:00", {}, "CPU x86_64",
    )  # fmt: skip
    store.put(record, {"valid": outputs(40, valid, rng), "test": outputs(200, test, rng)})


class Runs:
    """Stands in for `do_runs`: counts what is asked, and may be interrupted."""

    def __init__(self, stop_after=math.inf):
        self.done, self.stop_after = [], stop_after

    def __call__(self, recipes, store, how, listener):
        for name, recipe in recipes:
            if not store.has(recipe.key):
                if len(self.done) >= self.stop_after:
                    raise Interrupted
                made_up(store, name, recipe)
                self.done.append((name, recipe.seed))
        return True


@pytest.fixture
def study():
    return Study.from_dict(PLAIN)


@pytest.fixture
def go(store, monkeypatch):
    """Run a study in rounds, with made-up runs; gives what it came to and what was run."""

    def started(study, runs=None, budget=None, peek=False):
        runs = runs or Runs()
        monkeypatch.setattr(sequential, "do_runs", runs)
        monkeypatch.setattr(sequential, "train_for_longer", lambda *_: None)
        console = Console(record=True, width=200)
        done = run_until_decided(study, store, How(CPU, 2), OnTerminal(console), budget, peek=peek)
        return done, runs.done, console.export_text()

    return started


def rounds_in(store):
    return Rounds.from_dict(store.read_json("sequential.json"))


def test_surely_worse_is_dropped_and_the_rest_settled(go, store, study):
    done, runs, said = go(study)
    rounds = rounds_in(store)
    assert rounds.found[0].dropped == {"bad": "surely worse than plain", "adjusted": "surely worse than good"}
    assert (rounds.ended, rounds.judged_on) == ("settled", "validation")
    first = rounds.looks.seeds[0]
    assert len(done.seeds) == first and len(runs) == 4 * first
    assert done.seeds[:4] == (5, 3, 0, 1)  # the study's own first, then those not used yet
    assert "bad gets no more: surely worse than plain" in said and "every question is answered" in said


def test_what_is_dropped_gets_no_more_seeds(go, store, study, monkeypatch):
    monkeypatch.setitem(MEANS, "good", (21, 105))
    _, runs, _ = go(study, budget=Budget(max_runs=42))
    rounds = rounds_in(store)
    assert len(rounds.found) > 1 and "bad" in rounds.found[0].dropped
    first = rounds.looks.seeds[0]
    assert sum(name == "bad" for name, _ in runs) == first < sum(name == "plain" for name, _ in runs)
    verdict = collect(store).verdict
    assert {m.name: m.look for m in verdict.methods}["bad"] == 1
    assert any(
        sentence.startswith(f"Left out of the later rounds: bad after {first} seeds")
        for sentence in verdict.sentences()
    )


def test_the_verdict_counts_the_looks(go, store, study):
    go(study)
    results = collect(store)
    assert results.rounds == rounds_in(store) and results.verdict.looks == results.rounds.looks
    assert {m.name: (m.look, m.standing) for m in results.verdict.methods} == {
        "good": (1, "better"),
        "adjusted": (1, "not separable"),
        "plain": (1, "baseline"),
        "bad": (1, "worse"),
    }
    share = results.rounds.looks.shares[0]
    good = results.verdict.methods[0]
    assert good.p_holm == pytest.approx(3 * good.p / share)
    assert seal_notes(results.opened, results.rounds) == [] and still_to_do(store) is None


def test_nobody_looks_at_the_test_set_before_the_report(go, store, study, monkeypatch):
    def sealed(self, key):
        raise AssertionError("the test set was read")

    monkeypatch.setattr(Store, "test_sealed", sealed)
    go(study)
    assert not (store.path / "opened.json").exists()
    monkeypatch.undo()


def test_other_test_results_change_nothing(go, store, study, tmp_path, monkeypatch):
    go(study)
    first = (store.path / "sequential.json").read_text()
    monkeypatch.setitem(MEANS, "good", (30, 50))
    monkeypatch.setitem(MEANS, "bad", (10, 150))
    other = Store(tmp_path / "other")
    monkeypatch.setattr(sequential, "do_runs", Runs())
    run_until_decided(study, other, How(CPU, 2), Listener())
    assert (other.path / "sequential.json").read_text() == first


def test_peeking_judges_by_the_test_set_and_is_marked_for_ever(go, store, study, monkeypatch):
    monkeypatch.setitem(MEANS, "good", (20, 150))  # the validation data sees nothing
    _, runs, said = go(study, peek=True)
    assert rounds_in(store).judged_on == "test" and rounds_in(store).ended == "settled"
    assert "judged on test data" in said
    openings = store.opened().openings
    assert [(opening.peek, len(opening.keys)) for opening in openings] == [(True, len(runs))]
    results = collect(store)
    assert results.opened.openings == openings  # the report opens nothing new
    notes = seal_notes(results.opened, results.rounds)
    assert (
        f"The test results of {len(runs)} runs were looked at" in notes[0] and "before the study had ended" in notes[0]
    )
    assert "they hold whatever made the study end" in notes[1]


def test_stopped_and_taken_up_again_it_ends_the_same(go, store, study, tmp_path):
    study = replace(study, methods={name: study.methods[name] for name in ("plain", "adjusted")})
    go(study)
    whole = store.read_json("sequential.json")
    store.path.rename(tmp_path / "whole")
    stops = 0
    for stop_after in (3, 1, 20, 5, math.inf):
        try:
            go(study, Runs(stop_after))
        except Interrupted:
            stops += 1
            assert still_to_do(store) == "it is in the middle of its rounds"
    assert stops >= 3 and store.read_json("sequential.json") == whole
    assert store.read_json("study.json") == Store(tmp_path / "whole").read_json("study.json")


def test_no_run_is_done_twice(go, study):
    _, first, _ = go(study)
    _, second, _ = go(study)
    assert len(set(first)) == len(first) and second == []


def test_equal_methods_end_without_a_claim(go, store, study):
    few = replace(study, methods={name: study.methods[name] for name in ("plain", "adjusted")})
    done, _, said = go(few, budget=Budget(max_runs=14))
    rounds = rounds_in(store)
    assert rounds.ended in ("plan", "given up") and rounds.found[-1].given_up == ("adjusted against plain",)
    assert "Given up: adjusted against plain." in said
    assert len(done.seeds) == rounds.looks.seeds[len(rounds.found) - 1] <= 14  # two methods share each training


def test_runs_in_all_stay_below_the_budget(go, study):
    each = len(jobs_of(study.methods.values()))
    assert each == 3
    _, runs, _ = go(study, budget=Budget(max_runs=30))
    trainings = {(name, seed) for name, seed in runs if name != "adjusted"}
    assert len(trainings) <= 30


def test_a_smaller_budget_ends_a_plan_early_and_a_larger_one_takes_it_up(go, store, study, monkeypatch):
    monkeypatch.setitem(MEANS, "good", (21, 102))
    monkeypatch.setitem(MEANS, "bad", (20, 100))
    go(study, budget=Budget(max_runs=42))
    planned = rounds_in(store)
    assert len(planned.found) > 1
    first = planned.looks.seeds[0]
    done, runs, said = go(study, budget=Budget(max_runs=3 * first))
    assert len(done.seeds) == first and not runs and "beyond --max-runs" in said
    assert (rounds_in(store).ended, rounds_in(store).looks) == ("runs", planned.looks)
    assert store.read_json("study.json")["seeds"] == list(done.seeds)
    go(study)
    assert rounds_in(store) == planned


def test_minutes_keep_a_round_from_beginning(go, store, study, monkeypatch):
    monkeypatch.setattr(sequential.RunTimes, "cost", lambda *_: type("Cost", (), {"wall": 61.0})())
    with pytest.raises(EquipoiseError, match="not even the first round.*beyond --minutes"):
        go(study, budget=Budget(minutes=1))
    assert not (store.path / "study.json").exists()
    go(study, budget=Budget(minutes=2))


@pytest.mark.parametrize(
    ("max_runs", "message"), [(5, r"--max-runs 5 is 1 seed of 3 trainings, and 4 methods need 7 seeds.*allow 21 runs")]
)
def test_a_budget_for_nothing(go, study, store, max_runs, message):
    with pytest.raises(EquipoiseError, match=message):
        go(study, budget=Budget(max_runs=max_runs))
    assert not store.path.exists()


def test_rounds_need_validation_data_or_a_peek(go, study, store):
    bare = {n: replace(r, task=replace(r.task, valid=0.0)) for n, r in study.methods.items() if r.posthoc is None}
    with pytest.raises(EquipoiseError, match="this task has none: write valid = 0.1"):
        go(replace(study, methods=bare))
    assert not store.path.exists()
    go(replace(study, methods=bare), peek=True)


def test_a_study_that_was_reported_is_not_extended_by_what_it_showed(go, store, study):
    runs, fixed = Runs(), replace(study, seeds=(0, 1, 2))
    store.create().write_json("study.json", fixed.to_dict())
    runs(fixed.recipes(), store, How(CPU), Listener())
    collect(store)
    with pytest.raises(EquipoiseError, match="may not decide how many seeds follow"):
        go(study)


@pytest.mark.parametrize("changed", [{"metric": "macro_f1"}, {"baseline": "good"}], ids=["metric", "baseline"])
def test_another_question_is_not_trained_for_when_its_looks_are_spent(go, store, study, changed):
    """Nor one whose baseline has another recipe, as it may have in a new version."""
    go(study)
    other = replace(study, **changed)
    assert go(other)[1] == [], "nothing is opened yet"
    go(study)
    collect(store)
    with pytest.raises(EquipoiseError, match="another baseline or metric, and .*another folder with --out"):
        go(other)
    longer = replace(study.methods["plain"], plan=replace(study.methods["plain"].plan, epochs=9))
    with pytest.raises(EquipoiseError, match="another baseline or metric"):
        go(replace(study, methods={**study.methods, "plain": longer}))
    assert go(study)[1] == [], "the same goes on"
    assert go(replace(study, methods={n: r for n, r in study.methods.items() if n != "bad"}))[1] == []


def test_a_baseline_whose_recipe_says_more_is_the_same(go, store, study):
    """As in a new version that has an option more; its runs are the same."""
    go(study)
    collect(store)
    opened = store.opened()
    (first,) = opened.comparisons
    older = replace(first.baseline, recipe={k: v for k, v in first.baseline.recipe.items() if k != "loss"})
    store.write(replace(opened, comparisons=(replace(first, baseline=older),)))
    assert go(study)[1] == []


def test_the_list_of_openings_may_be_damaged(go, store, study):
    go(study)
    collect(store)
    (store.path / "opened.json").write_text("torn")
    assert go(replace(study, metric="macro_f1"))[1] == []


def test_a_study_in_rounds_is_not_run_as_if_its_seeds_were_fixed(go, store, study):
    go(study)
    for _ in range(2):  # the second time without its plan
        with pytest.raises(EquipoiseError, match="go on with --until-decided"):
            run_study(study, store, How(CPU), Listener())
        (store.path / "sequential.json").unlink(missing_ok=True)


def test_failed_and_broken_runs_are_missing_scores(store, study):
    store.create()
    study = replace(study, seeds=(0, 1, 2))
    for name, recipe in study.recipes():
        made_up(store, name, recipe)
    broken, failed = (replace(study.methods["good"], seed=seed).key for seed in (0, 1))
    (store.path / "runs" / broken / "valid.npz").write_bytes(b"torn")
    record = store.get(failed)
    store.remove(failed)
    store.put(replace(record, state="failed", error="x"))
    found = paired_scores(study, store)
    assert [math.isnan(x) for x in found["good"]] == [True, True, False]
    assert not any(math.isnan(x) for x in found["bad"])


def test_scores_are_those_of_the_priority(store):
    study = Study.from_dict({**PLAIN, "seeds": [0], "priority": {"prior": {"0": 0.0, "1": 1.0, "2": 0.0}}})
    with pytest.raises(EquipoiseError, match="no class of prior is named '0'"):
        run_until_decided(study, store, How(CPU), Listener())
    plain = replace(study.methods["plain"], seed=0)
    study = Study.from_dict({**PLAIN, "seeds": [0], "priority": {"prior": [0, 1, 0]}})
    made_up(store.create(), "plain", plain)
    valid = store.valid(plain.key)
    second = valid["labels"] == 1
    expected = (valid["logits"][second].argmax(1) == 1).mean()
    assert paired_scores(study, store)["plain"] == [pytest.approx(expected)]


def test_a_plan_uses_each_seed_once(study):
    rounds = new_rounds(replace(study, seeds=(7, 0, 30)), Budget(max_runs=60))
    assert len(set(rounds.seeds)) == len(rounds.seeds) == rounds.looks.seeds[-1] == 20
    assert rounds.seeds[:6] == (7, 0, 30, 1, 2, 3)
