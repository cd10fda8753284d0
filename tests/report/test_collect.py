"""What the report knows of a study, against numbers computed here, for whole, broken and empty stores."""

import math
from dataclasses import replace

import numpy as np
import pytest

from equipoise.analysis import mean_interval
from equipoise.analysis.statistics.looks import Looks
from equipoise.analysis.statistics.sequential import Round, Rounds
from equipoise.core import EquipoiseError
from equipoise.report import collect
from equipoise.report.collect import estimate, estimates
from equipoise.store import Store

T_975_WITH_5 = 2.5705818  # Student's t, 5 degrees of freedom, from a printed table
T_975_WITH_3 = 3.1824463


def accuracies(demo, method, seed):
    """Accuracy of each class, by counting."""
    test = demo.simulated(method, seed)
    right = test["logits"].argmax(1) == test["labels"]
    return np.array([right[test["labels"] == c].mean() for c in range(10)])


def by_name(results):
    return {method.name: method for method in results.methods}


def test_states_of_runs(store):
    results = collect(store)
    assert (len(results.finished), len(results.failed), len(results.missing)) == (22, 1, 1)
    assert [(run.method, run.seed) for run in results.failed] == [("focal", 2)]
    assert [(run.method, run.seed) for run in results.missing] == [("focal", 4)]
    assert "FloatingPointError" in results.failed[0].problem
    assert all(math.isnan(v) for run in (*results.failed, *results.missing) for v in run.metrics.values())


def test_scores_and_intervals(store, demo):
    method = by_name(collect(store))["ldam"]
    scores = np.array([accuracies(demo, "ldam", seed).mean() for seed in range(6)])
    half = T_975_WITH_5 * scores.std(ddof=1) / math.sqrt(6)
    assert [run.metrics["balanced_accuracy"] for run in method.runs] == pytest.approx(scores)
    e = method.estimates["balanced_accuracy"]
    assert (e.n, e.mean, e.half) == (6, pytest.approx(scores.mean()), pytest.approx(half))
    assert (method.result.mean, method.result.low) == (pytest.approx(e.mean), pytest.approx(e.low))


def test_standard_errors(results, demo):
    scores = np.array([accuracies(demo, "ldam", seed).mean() for seed in range(6)])
    error = math.sqrt(((scores - scores.mean()) ** 2).sum() / 5 / 6)
    assert by_name(results)["ldam"].estimates["balanced_accuracy"].error == pytest.approx(error)


def test_confusions_are_summed_over_the_finished_runs(results, demo):
    counts = {}
    for seed in (0, 1, 3, 5):
        test = demo.simulated("focal", seed)
        for true, predicted in zip(test["labels"], test["logits"].argmax(1), strict=True):
            counts[true, predicted] = counts.get((true, predicted), 0) + 1
    assert by_name(results)["focal"].confusion == counts


def test_reliability_gives_the_expected_calibration_error(results, demo):
    """Bins of one run, by a loop over its samples; and ECE from them is the metric."""
    run = by_name(results)["ldam"].runs[0]
    test = demo.simulated("ldam", 0)
    logits = test["logits"].astype(np.float64)
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    bins = [[0, 0.0, 0] for _ in range(15)]
    for p, label in zip(probs, test["labels"], strict=True):
        bin_ = bins[max(math.ceil(p.max() * 15 - 1e-12) - 1, 0)]
        bin_[0], bin_[1], bin_[2] = bin_[0] + 1, bin_[1] + p.max(), bin_[2] + (p.argmax() == label)
    assert [b.n for b in run.reliability] == [n for n, _, _ in bins]
    assert [b.confidence for b in run.reliability] == pytest.approx(
        [c for _, c, _ in bins], abs=0.2
    )  # stored in halves
    assert [b.right for b in run.reliability] == [r for _, _, r in bins]
    ece = sum(abs(b.right - b.confidence) for b in run.reliability) / sum(b.n for b in run.reliability)
    assert run.metrics["ece"] == pytest.approx(ece)
    pooled = by_name(results)["ldam"].reliability
    assert sum(b.n for b in pooled) == 6 * 300


def test_the_classes_are_known_though_the_first_run_failed(store, demo):
    """A run that failed before it had its data knows no class."""
    store.remove(demo.key_of("plain", 0))
    store.put(demo.record_of("plain", 0, state="failed", error="no", class_names=(), class_counts=()))
    assert collect(store).class_names == demo.CLASS_NAMES


def test_pairs_leave_out_what_is_missing(store, demo):
    focal = by_name(collect(store))["focal"]
    seeds = [0, 1, 3, 5]
    differences = [accuracies(demo, "focal", s).mean() - accuracies(demo, "plain", s).mean() for s in seeds]
    assert [seed for seed, _ in focal.differences] == seeds
    assert [d for _, d in focal.differences] == pytest.approx(differences)
    assert focal.result.n_pairs == 4
    assert focal.result.difference == pytest.approx(np.mean(differences))


def test_accuracy_of_each_class(store, demo):
    focal = by_name(collect(store))["focal"]
    values = np.array([accuracies(demo, "focal", s) for s in (0, 1, 3, 5)])
    half = T_975_WITH_3 * values.std(axis=0, ddof=1) / 2
    assert [e.mean for e in focal.per_class] == pytest.approx(values.mean(axis=0))
    assert [e.half for e in focal.per_class] == pytest.approx(half)
    assert {e.n for e in focal.per_class} == {4}


def test_curves_are_means_over_the_finished_runs(store, demo):
    focal = by_name(collect(store))["focal"]
    values = [demo.curves("focal", s)["train_loss"][0] for s in (0, 1, 3, 5)]
    first = focal.curves["train_loss"][0]
    assert (first.n, first.mean) == (4, pytest.approx(np.mean(values)))
    assert len(focal.curves["train_loss"]) == 30


def test_curves_of_any_name_and_length(store, demo):
    store.remove(demo.key_of("plain", 0))
    odd = {"train_loss": [3.0, None, float("nan")], "momentum": [0.9]}
    store.put(demo.record_of("plain", 0, curves=odd), {"test": demo.simulated("plain", 0)})
    results = collect(store)
    plain = by_name(results)["plain"]
    assert results.curve_names == ("train_loss", "valid_loss", "valid_balanced_accuracy", "momentum")
    assert [e.n for e in plain.curves["train_loss"][:4]] == [6, 5, 5, 5]
    assert plain.curves["momentum"][0].mean == 0.9
    assert math.isnan(plain.curves["momentum"][0].low)


def test_the_margin_of_equality_is_in_points(store, demo):
    demo.write_study(store, equivalent_within=40.0)
    results = collect(store)
    assert results.verdict.equivalent_within == 0.4
    assert all(math.isfinite(m.result.p_equal) for m in results.methods if not m.is_baseline)


def test_order_and_colours(store):
    results = collect(store)
    assert {m.name: m.index for m in results.methods} == {"plain": 0, "balanced_softmax": 1, "ldam": 2, "focal": 3}
    places = [(m.result.tier, m.rank) for m in results.methods]
    assert places == sorted(places)
    means = [m.result.mean for m in sorted(results.methods, key=lambda m: m.rank)]
    assert means == sorted(means, reverse=True)


def test_marks_and_changes(store, demo):
    methods = by_name(collect(store))
    assert methods["ldam"].marks == ("other network",)  # its head has fewer parameters
    assert methods["focal"].marks == methods["plain"].marks == ()
    assert methods["plain"].changes == ()
    assert methods["ldam"].changes == (
        ("head", "linear(prior=None)", "cosine(tau=None)"),
        ("loss", "cross_entropy", "ldam(max_margin=0.5, scale=30.0)"),
    )


def test_marks_of_other_task_plan_and_data(store, demo):
    study = store.read_json("study.json")
    recipe = study["methods"][3]["recipe"]
    recipe["task"]["ratio"], recipe["plan"]["epochs"] = 100.0, 60
    store.write_json("study.json", study)
    for seed in range(6):
        key = demo.key_of("focal", seed)
        if store.has(key) and store.get(key).finished:
            other = replace(store.get(key), recipe={**recipe, "seed": seed}, data="other")
            outputs = store.test_sealed(key)
            store.remove(key)
            store.put(other, {"test": outputs})
    focal = by_name(collect(store))["focal"]
    assert focal.marks == ("other task", "other data", "other plan")
    assert ("plan.epochs", "30", "60") in focal.changes


def test_classes_of_another_task_are_not_mixed_in(store, demo):
    store.remove(demo.key_of("focal", 0))
    record = demo.record_of("focal", 0, class_names=tuple(reversed(demo.CLASS_NAMES)))
    record.recipe["task"]["ratio"] = 100.0
    store.put(record, {"test": demo.simulated("focal", 0)})
    assert {e.n for e in by_name(collect(store))["focal"].per_class} == {3}


@pytest.mark.parametrize("change", [{"data": "other"}, {"class_names": ("a", "b")}])
def test_runs_of_one_task_that_saw_unlike_data_are_refused(store, demo, change):
    store.remove(demo.key_of("focal", 1))
    store.put(demo.record_of("focal", 1, **change), {"test": demo.simulated("focal", 1)})
    with pytest.raises(EquipoiseError, match=r"saw different data.*data0001.*plain, seed 1.*: focal, seed 1.*--out"):
        collect(store)


def test_the_opening_of_the_test_set_is_known(store):
    assert not (store.path / "opened.json").exists()
    results = collect(store)
    assert results.opened == store.opened()


def test_a_study_without_runs(tmp_path, demo):
    store = Store(tmp_path / "empty").create()
    demo.write_study(store)
    results = collect(store)
    assert len(results.missing) == 24
    assert results.opened is None
    assert results.curve_names == results.class_names == ()
    assert "Nothing can be compared" in results.answer[0]


def test_a_study_whose_baseline_has_not_run(store, demo):
    for seed in range(6):
        store.remove(demo.key_of("plain", seed))
    results = collect(store)
    assert by_name(results)["ldam"].estimates["accuracy"].n == 6
    assert all(not method.differences for method in results.methods)
    assert results.class_names == demo.CLASS_NAMES


def nan_logits(store, demo, key):
    bad = demo.simulated("plain", 0)
    bad["logits"][3] = np.nan
    store.remove(key)
    store.put(demo.record_of("plain", 0), {"test": bad})


def no_outputs(store, demo, key):
    (store.path / "runs" / key / "test.npz").unlink()


def damaged_outputs(store, demo, key):
    (store.path / "runs" / key / "test.npz").write_bytes(b"PK\x03\x04 torn")


@pytest.mark.parametrize("breaks", [nan_logits, no_outputs, damaged_outputs])
def test_outputs_that_cannot_be_judged_are_a_failed_run(store, demo, breaks):
    key = demo.key_of("plain", 0)
    breaks(store, demo, key)
    run = by_name(collect(store))["plain"].runs[0]
    assert run.state == "failed"
    assert ("is damaged" if breaks in (no_outputs, damaged_outputs) else "cannot be judged") in run.problem
    assert math.isnan(run.metrics["accuracy"])


def test_an_infinite_score_is_a_failed_run(store, demo):
    """Dropping it silently would flatter the method; averaging it would hide all else."""
    store.write_json("study.json", store.read_json("study.json") | {"metric": "nll"})
    sure = demo.simulated("plain", 0)
    sure["logits"][0, sure["labels"][0]] = -np.inf
    np.savez(store.path / "runs" / demo.key_of("plain", 0) / "test.npz", **sure)
    run = by_name(collect(store))["plain"].runs[0]
    assert (run.state, "infinite" in run.problem) == ("failed", True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"metric": "beauty"}, "'beauty'"), ({"baseline": "nobody"}, "'nobody'"), ({"schema": 99}, "newer version")],
)
def test_a_study_that_cannot_be_read(store, changes, words):
    store.write_json("study.json", store.read_json("study.json") | changes)
    with pytest.raises(EquipoiseError, match=words):
        collect(store)


def test_the_answer_names_the_best_method(eight):
    assert len(eight.answer) == 2
    assert "balanced_softmax" in eight.answer[0]
    assert eight.answer[1].startswith("balanced_softmax is better than plain")


def test_the_answer_says_when_seeds_are_too_few(store):
    assert "6 pairs cannot support any claim" in collect(store).answer[1]


def rounds(ended):
    """Two looks, after three and six seeds; the first dropped focal."""
    found = (
        Round(("plain", "balanced_softmax", "ldam", "focal"), {"focal": "surely worse than ldam"}, ("…",), ()),
        Round(("plain", "balanced_softmax", "ldam"), {}, (), ()),
    )
    return Rounds(0.05, Looks((3, 6), (0.5, 0.5)), tuple(range(6)), found, ended).to_dict()


def test_runs_that_no_round_asked_for_are_not_missing(store, demo):
    for seed in (3, 4, 5):
        store.remove(demo.key_of("focal", seed))
    store.write_json("sequential.json", rounds("settled"))
    results = collect(store)
    assert [run.state for run in by_name(results)["focal"].runs] == ["finished", "finished", "failed"] + [
        "left out"
    ] * 3
    assert results.missing == ()
    assert (len(results.runs), len(results.planned)) == (24, 21)


def test_estimates_of_columns_are_those_of_each_column():
    table = [[1.0, math.nan, 5.0, math.inf], [2.0, math.nan, math.nan, 3.0], [4.0, math.nan, 6.0, 1.0]]
    for found, column in zip(estimates(table), zip(*table, strict=True), strict=True):
        known = [v for v in column if math.isfinite(v)]
        low, high = mean_interval(known)
        mean = sum(known) / len(known) if known else math.nan
        error = np.std(known, ddof=1) / math.sqrt(len(known)) if known else math.nan
        assert found.n == len(known)
        assert [found.mean, found.low, found.high, found.error] == pytest.approx([mean, low, high, error], nan_ok=True)
    assert estimate([]).n == 0 and math.isnan(estimate([]).mean)
    assert estimate([0.5]).mean == 0.5 and math.isnan(estimate([0.5]).low)
