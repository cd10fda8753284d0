"""What a report says that it takes for granted, and what follows where that fails."""

import json
import shutil
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from equipoise.report import collect, print_verdict, render_markdown, write_report
from equipoise.report.premises import names_one_class, premises_of
from equipoise.store import Audited, Convergence, Damaged, LongerRun, Store

KEY = "1f" * 8


@pytest.fixture
def eight_seeds(tmp_path, demo) -> Store:
    return demo.make_store(tmp_path / "eight", seeds=8)


def with_longer_run(store, demo, strength: float, losses=(2.0, 0.15), **of_study) -> Store:
    """With a run of plain for 60 epochs instead of 30, whose logits are stronger on the true class by so much."""
    outputs = demo.simulated("plain", 0)
    logits = outputs["logits"].copy()
    logits[range(len(logits)), outputs["labels"]] += strength
    record = demo.record_of("plain", 0)
    curves = record.curves | {"train_loss": list(losses)}
    recipe = record.recipe | {"plan": record.recipe["plan"] | {"epochs": 60}}
    store.put(
        replace(record, key=KEY, recipe=recipe, curves=curves),
        {"valid": outputs, "test": {**outputs, "logits": logits}},
    )
    store.write(Convergence((LongerRun("plain", 0, KEY, 30, 60),)))
    if of_study:
        store.write_json("study.json", store.read_json("study.json") | of_study)
    return store


def words(results) -> dict:
    return {premise.name: (premise.holds, premise.words) for premise in results.premises}


def test_without_a_longer_run_nothing_is_known(results):
    assert words(results) == {
        "learned": (True, "yes: every run tells classes apart"),
        "converged": (None, "not checked: 'equipoise run' checks it once all runs are done"),
        "independent": (None, "not checked: the split is taken as it is"),
        "same data": (True, "yes: all 22 runs saw the same images, seed by seed"),
    }
    assert not results.verdict.broken


def test_runs_that_name_one_class_for_all_images_are_named(eight_seeds, demo):
    """As after too high a rate: the loss is finite, the score is chance, and the mean says nothing of it."""
    for seeds, told in (
        (1, "1 run names one class for all images (plain, seed 0); means include it"),
        (2, "2 runs name one class for all images (plain, seeds 0, 1); means include them"),
    ):
        for seed in range(seeds):
            record, outputs = demo.record_of("plain", seed), demo.simulated("plain", seed)
            stuck = outputs["logits"] * 0
            stuck[:, 3] = 1.0
            shutil.rmtree(eight_seeds.path / "runs" / record.key, ignore_errors=True)
            eight_seeds.put(record, {"valid": outputs, "test": {**outputs, "logits": stuck}})
        results = collect(eight_seeds)
        assert words(results)["learned"] == (False, f"no: {told}")
        assert f"- learned: no: {told}" in render_markdown(results)


def test_what_runs_learned_is_not_known_without_test_images(store, results):
    finished = next(run for run in results.runs if run.finished)
    for runs, why in (
        ([], "no run has finished"),
        ([replace(finished, state="missing", confusion={})], "no run has finished"),
        ([replace(finished, confusion={})], "there are no test images"),
    ):
        first = premises_of(store.study(), Convergence(reason="-"), [], runs, None)[0]
        assert (first.name, first.holds, first.words) == ("learned", None, f"not known: {why}")


def test_images_of_one_class_say_nothing_about_learning():
    assert names_one_class({(0, 1): 5, (1, 1): 3})
    assert not names_one_class({(0, 1): 5}) and not names_one_class({(0, 0): 5, (1, 1): 3})


def test_a_study_says_why_there_is_no_longer_run(store):
    store.write(Convergence(reason="a longer training costs 50 % of the study; --pilot makes it"))
    said = words(collect(store))["converged"]
    assert said == (None, "not checked: a longer training costs 50 % of the study; --pilot makes it")


def test_a_longer_run_that_is_lost_is_not_passed_over(eight_seeds, demo):
    store = with_longer_run(eight_seeds, demo, 0.0)
    store.write(Convergence((LongerRun("plain", 0, KEY, 30, 60), LongerRun("focal", 0, "0" * 16, 30, 60))))
    said = words(collect(store))["converged"]
    assert said == (None, "not known: a longer training is missing or did not finish")


def test_a_longer_run_that_is_lost_is_told_beside_one_that_gains_much(eight_seeds, demo):
    store = with_longer_run(eight_seeds, demo, 3.0)
    store.write(Convergence((LongerRun("plain", 0, KEY, 30, 60), LongerRun("focal", 0, "0" * 16, 30, 60))))
    holds, said = words(collect(store))["converged"]
    assert holds is False and said.endswith("; a longer training is missing or did not finish")


def test_training_that_gains_nothing_more_has_converged(eight_seeds, demo, eight):
    results = collect(with_longer_run(eight_seeds, demo, 0.0))
    holds, said = words(results)["converged"]
    assert holds and said.startswith("yes: with 60 instead of 30 epochs plain gains ") and "(by chance up to " in said
    assert repr(results.verdict) == repr(eight.verdict)  # a longer run is no part of the comparison
    assert KEY in results.opened.keys  # that its test outputs were read is written down


def test_training_that_gains_much_withholds_every_claim(eight_seeds, demo, eight):
    assert any(m.standing == "better" for m in eight.verdict.methods)
    store = with_longer_run(eight_seeds, demo, 3.0)
    results = collect(store)
    holds, said = words(results)["converged"]
    assert holds is False and said.startswith("no: with 60 instead of 30 epochs plain gains ")
    assert results.answer[0].startswith("Training has not converged: with 60 instead of 30 epochs plain gains ")
    assert "Claims are withheld: train for more epochs" in results.answer[0]
    assert not {m.standing for m in results.verdict.methods} & {"better", "worse"}
    assert "the claim is withheld" in results.answer[1]
    page = write_report(store).read_text()
    assert "Training has not converged" in page and ">withheld<" in page and ">better<" not in page
    verdict = json.loads((store.path / "verdict.json").read_text())
    assert verdict["premises"][1]["holds"] is False and verdict["broken"].startswith("Training has not converged")
    assert "- converged: no" in render_markdown(results)


def test_who_insists_gets_claims_and_the_page_says_so(eight_seeds, demo, eight):
    results = collect(with_longer_run(eight_seeds, demo, 3.0, accept_short_training=True))
    assert [m.standing for m in results.verdict.methods] == [m.standing for m in eight.verdict.methods]
    assert results.answer[0].startswith("Training has not converged: ")
    assert "The study accepts that (accept_short_training), so claims are made all the same." in results.answer[0]


def complete(store, demo) -> Store:
    """With the run that the others lack."""
    store.put(demo.record_of(*demo.MISSING), {"test": demo.simulated(*demo.MISSING)})
    return store


def test_withheld_claims_do_not_come_back_when_the_list_of_longer_runs_is_gone(eight_seeds, demo):
    store = with_longer_run(complete(eight_seeds, demo), demo, 3.0)
    (store.path / "convergence.json").unlink()
    with pytest.raises(
        Damaged, match=r"convergence.json is damaged: it is gone, though longer .* 'equipoise run' with"
    ):
        collect(store)


def test_a_complete_study_without_a_list_of_longer_runs_says_that_it_is_not_there(store, demo):
    said = "not checked: convergence.json is not there; 'equipoise run' with the file of the study writes it again"
    assert words(collect(complete(store, demo)))["converged"] == (None, said)


def test_a_longer_run_that_failed_tells_nothing(store, demo):
    store.put(replace(demo.record_of("plain", 0), key=KEY, state="failed", error="it broke"))
    store.write(Convergence((LongerRun("plain", 0, KEY, 30, 60),)))
    results = collect(store)
    assert words(results)["converged"] == (None, "not known: a longer training is missing or did not finish")
    assert not results.verdict.broken


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("folder(path='x')", (None, "not checked: run 'equipoise audit', and give group or groups in [task]")),
        ("folder(path='x', group='(.+)_')", (True, "yes: images of one group are on one side of every split")),
        ("folder(path='x', groups='g.csv')", (True, "yes: images of one group are on one side of every split")),
    ],
)
def test_groups_that_were_given_are_told(store, task, said):
    study = store.read_json("study.json")
    for method in study["methods"]:
        method["recipe"]["task"]["name"] = task
    store.write_json("study.json", study)
    assert words(collect(store))["independent"] == said


@pytest.mark.parametrize(
    ("task", "audited", "said"),
    [
        ("folder(path='x')", Audited("a", 0, 0, None), (True, "yes: the audit found neither copies nor groups")),
        (
            "folder(path='x')",
            Audited("a", 1, 0, "(.+)_"),
            (
                False,
                "no: 1 image has copies and file names tell of groups; write groups = 'a/groups.csv' and group = "
                "'(.+)_' in [task], in another folder (--out)",
            ),
        ),
        (
            "folder(path='x', group='(.+)_')",
            Audited("a", 3, 0, "(.+)_"),
            (True, "yes: images of one group are on one side of every split"),
        ),
        (
            "folder(path='x', group='(.+)_')",
            Audited("a", 3, 2, None),
            (False, "no: 2 images or groups in two parts, as a/audit.html shows"),
        ),
        (
            "folder(path='x')",
            Audited("a", 0, 0, None, outdated="1 image was added since"),
            (None, "not known: 1 image was added since; run 'equipoise audit' again"),
        ),
        (
            "folder(path='x', groups='g.csv')",
            Audited("a", 3, 0, None, outdated="1 image was added since"),
            (None, "not known: 1 image was added since; run 'equipoise audit' again"),
        ),
        (
            "folder(path='x', group='(.+)_')",  # tells of new images too
            Audited("a", 3, 0, None, outdated="1 image was added since"),
            (True, "yes: images of one group are on one side of every split"),
        ),
    ],
)
def test_what_an_audit_found_is_told(store, task, audited, said):
    store.write(audited)
    test_groups_that_were_given_are_told(store, task, said)


def test_three_lines_under_the_verdict(eight):
    out = StringIO()
    print_verdict(eight, Console(file=out, width=80))
    lines = out.getvalue().splitlines()
    assert [line.split("  ")[0] for line in lines if line.startswith(("converged", "independent", "same data"))] == [
        "converged",
        "independent",
        "same data",
    ]
    assert all(len(line) <= 80 for line in lines)
