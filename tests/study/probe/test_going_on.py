"""An analysis that is repeated, stopped, asked for more, or cannot measure a run."""

import pytest

from equipoise.store import Analysis
from equipoise.study import Asked, Interrupted
from equipoise.study.probe import analysis_markdown
from equipoise.study.probe import probe as analyze


def test_what_was_measured_is_not_measured_again(store, monkeypatch, run):
    first = run(store)
    monkeypatch.setattr(analyze, "measure", lambda *given: pytest.fail("measured again"))
    assert run(store) == first


def test_other_images_are_measured_anew(store, run):
    assert run(store)["representations"]["images"] == 200
    assert run(store, Asked(images=50))["representations"]["images"] == 50


def test_a_stopped_analysis_goes_on(store, monkeypatch, run):
    measure, seen = analyze.measure, []

    def stopping(network, *rest):
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(network.recipe.key)
        return measure(network, *rest)

    monkeypatch.setattr(analyze, "measure", stopping)
    with pytest.raises(Interrupted):
        run(store)
    assert not (store.path / "analysis.json").exists()
    monkeypatch.setattr(analyze, "measure", lambda n, *rest: seen.append(n.recipe.key) or measure(n, *rest))
    run(store)
    assert len(seen) == len(set(seen)) == 6


def test_what_was_asked_for_before_is_kept(analyzed, monkeypatch, run):
    store, before = analyzed
    monkeypatch.setattr(analyze, "network_of", lambda *given: pytest.fail("measured again"))
    again = run(store)
    assert again["transfer"] == before["transfer"] and again["corruptions"] == before["corruptions"]


def test_a_run_that_cannot_be_measured_is_told(store, monkeypatch, run, runs_of):
    bad = runs_of(store, "weighted")[1].key
    measure = analyze.measure

    def refusing(network, *rest):
        if network.recipe.key == bad:
            raise ValueError("features are not finite in 3 of 200 rows")
        return measure(network, *rest)

    monkeypatch.setattr(analyze, "measure", refusing)
    found = run(store)
    assert [(p["method"], p["seed"]) for p in found["problems"]] == [("weighted", 1)]
    assert found["representations"]["methods"][1]["separation"]["cosine"][-1]["n"] == 2
    assert "weighted, seed 1: not measured, features are not finite" in analysis_markdown(store.document(Analysis))


def test_one_run_alone(store, run):
    study = store.read_json("study.json")
    study["methods"], study["seeds"] = [study["methods"][0] | {"keys": study["methods"][0]["keys"][:1]}], [0]
    store.write_json("study.json", study)
    found = run(store)
    assert found["predictions"] is None and found["representations"]["cka"] is None
    assert found["representations"]["methods"][0]["separation"]["cosine"][-1]["low"] is None
