"""A report counts what was compared on its test set before, whatever the study file says now."""

import json
from itertools import product

import numpy as np
import pytest

from equipoise.analysis.statistics.looks import Looks
from equipoise.analysis.statistics.sequential import Round, Rounds
from equipoise.report import collect, write_report
from equipoise.store import Store

SEEDS = 6
METHODS = ("plain", "better", "other", "third")


def outputs(method, seed, n=200):
    """Logits of two classes; `better` is right a little more often than plain with every seed."""
    labels = np.arange(n) % 2
    wrong = np.zeros(n, dtype=bool)
    rng = np.random.default_rng([seed, len(method)])
    wrong[: {"plain": 60, "better": 50 - seed, "other": 58, "third": 61}[method] + int(rng.integers(0, 3))] = True
    logits = np.zeros((n, 2), dtype=np.float32)
    logits[np.arange(n), np.where(wrong, 1 - labels, labels)] = 2.0
    return {"logits": logits, "labels": labels}


@pytest.fixture
def made(tmp_path, demo):
    store = Store(tmp_path / "s").create()
    for method, again, seed in product(METHODS, ("", "!"), range(SEEDS + 3)):
        key = f"{method}{again}-{seed}"
        record = demo.record_of("plain", seed, key=key, class_names=("x", "y"), class_counts=(9, 3), curves={})
        store.put(record, {"test": outputs(method, seed)})
    return store


def keys(method, seeds):
    return [f"{method}-{seed}" for seed in seeds]


def ask(store, methods=METHODS, seeds=SEEDS, metric="balanced_accuracy", baseline="plain", again=""):
    seeds = list(range(seeds)) if isinstance(seeds, int) else seeds
    study = {
        "schema": 1, "name": "s", "question": "What is better?", "baseline": baseline, "metric": metric, "seeds": seeds,
        "methods": [
            {"name": n, "recipe": {"task": {"name": "t"}, "loss": n + again}, "keys": keys(n + again, seeds)}
            for n in methods
        ],
    }  # fmt: skip
    store.write_json("study.json", study)
    results = collect(store)
    return results, {m.name: m.result for m in results.methods}


def test_dropping_methods_makes_no_claim(made):
    """Six pairs of three methods can claim nothing; without two of them the same pairs could."""
    _, first = ask(made)
    assert (first["better"].standing, first["better"].p_holm) == ("not separable", 0.09375)
    results, then = ask(made, methods=("plain", "better"))
    assert (then["better"].standing, then["better"].p_holm) == ("not separable", 0.09375)
    said = "2 methods that were compared before (other, third) are not in this study any more; they still count"
    assert said in results.verdict.sentences()[0] and said in " ".join(results.answer)
    assert said in write_report(made, results).read_text()
    assert said in json.loads((made.path / "verdict.json").read_text())["sentences"][0]
    assert said in (made.path / "report.md").read_text()


def test_one_method_from_the_start_is_claimed(made):
    _, found = ask(made, methods=("plain", "better"))
    assert (found["better"].standing, found["better"].p_holm) == ("better", 0.03125)
    # and stays so when methods or seeds are added
    assert ask(made)[1]["better"].standing == "better"
    assert ask(made, seeds=8)[1]["better"].standing == "better"


def test_a_seed_left_out_still_counts(made):
    ask(made, methods=("plain", "other"), seeds=7)
    results, found = ask(made, methods=("plain", "other"), seeds=[0, 1, 2, 3, 4, 6])
    assert found["other"].n_pairs == 7 and results.seeds == (0, 1, 2, 3, 4, 6, 5)
    assert (
        "1 seed that was compared before (5) is not in this study any more; its runs still count."
        in (results.verdict.sentences()[0])
    )


def test_another_metric_is_judged_as_one_of_all(made):
    ask(made, methods=("plain", "better"))
    results, found = ask(made, methods=("plain", "better"), metric="macro_f1")
    assert found["better"].standing == "not separable" and found["better"].p == 0.03125
    assert (
        "first opened for balanced accuracy; macro F1 was chosen when the results were known"
        in (results.verdict.sentences()[0])
    )
    # the first metric keeps what it had
    assert ask(made, methods=("plain", "better"))[1]["better"].standing == "better"


def test_another_baseline_is_judged_as_one_of_all(made):
    ask(made, methods=("plain", "better"))
    results, found = ask(made, methods=("plain", "better"), baseline="better")
    assert found["plain"].standing == "not separable"
    assert "first opened with plain as the baseline" in results.verdict.sentences()[0]


def test_a_method_changed_under_its_name_is_another(made):
    ask(made)
    study = made.read_json("study.json")
    study["methods"] = study["methods"][:2]
    changed = study["methods"][1]
    changed["recipe"]["loss"], changed["keys"] = "changed", keys("better!", range(SEEDS))
    made.write_json("study.json", study)
    assert collect(made).verdict.gone == ("better (before)", "other", "third")


def test_a_recipe_that_says_more_is_the_same_method(made):
    """A new version has an option more, which at its default is no part of a run's key."""
    _, before = ask(made, methods=("plain", "better"))
    study = made.read_json("study.json")
    for method in study["methods"]:
        method["recipe"]["loss"] += "(new=0)"
        method["recipe"]["task"]["new"] = 0
    made.write_json("study.json", study)
    results = collect(made)
    assert results.verdict.share == 1
    assert {m.name: m.result.standing for m in results.methods} == {n: m.standing for n, m in before.items()}


def test_new_recipes_of_all_have_what_is_left(made):
    """Other epochs for all, say: nothing of it was seen before, but the test set was looked at."""
    ask(made, methods=("plain", "better"))
    results, found = ask(made, methods=("plain", "better"), again="!")
    assert results.verdict.gone == () and results.verdict.share == pytest.approx(1 - 0.03125 / 0.05)
    assert found["better"].standing == "not separable" and not results.verdict.notes


def test_other_data_is_another_question(made):
    ask(made)
    study = made.read_json("study.json")
    for method in study["methods"]:
        method["recipe"]["task"], method["keys"] = {"name": "another"}, keys(method["name"] + "!", range(SEEDS))
    study["methods"] = study["methods"][:2]
    made.write_json("study.json", study)
    assert collect(made).verdict.gone == ()


def test_rounds_count_what_is_gone_and_claim_for_the_first_metric_alone(made):
    looks = Looks((6, 8), (0.5, 0.5))
    methods = ("plain", "better", "other")
    rounds = Rounds(0.05, looks, tuple(range(8)), (Round(methods, {}, (), ()),) * 2, "settled")
    made.write_json("sequential.json", rounds.to_dict())
    _, first = ask(made, methods=methods, seeds=8)
    assert first["better"].standing == "better" and first["better"].p_holm == pytest.approx(2 * 2 * 2 / 2**8)
    results, then = ask(made, methods=("plain", "better"), seeds=8)
    assert then["better"].p_holm == first["better"].p_holm and results.verdict.gone == ("other",)
    _, changed = ask(made, methods=methods, seeds=8, metric="macro_f1")
    assert (changed["better"].standing, changed["better"].p_holm) == ("not separable", 1.0)


def test_the_same_report_twice_adds_nothing(made):
    ask(made)
    first = made.opened()
    write_report(made)
    assert made.opened() == first and len(first.comparisons) == 1


def test_runs_that_were_removed_count_in_the_correction(made):
    ask(made)
    for seed in range(SEEDS):
        made.remove(f"third-{seed}")
    _, found = ask(made, methods=("plain", "better"))
    assert found["better"].p_holm == 0.09375
