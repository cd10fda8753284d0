"""What a report says of a test set that was opened early, or again."""

import json

import pytest

from equipoise.analysis.statistics.looks import Looks
from equipoise.analysis.statistics.sequential import Round, Rounds
from equipoise.core import EquipoiseError
from equipoise.report import collect, seal_notes, still_to_do, write_report
from equipoise.report.provenance import provenance
from equipoise.store import Opened, Opening


def opening(keys, peek=False, when="2026-01-02T10:00:00+00:00"):
    return Opening(when, "0.1.0", peek, tuple(f"k{i}" for i in range(keys)))


def opened(*openings, **more):
    return Opened("2026-01-02T10:00:00+00:00", "0.1.0", openings, **more)


ROUNDS = Rounds(0.05, Looks((6, 8), (0.5, 0.5)), tuple(range(8)), (Round(("a", "b"), {}, (), ()),), "settled")


def test_a_plain_report_at_the_end_needs_no_note():
    assert seal_notes(None, None) == seal_notes(opened(opening(4)), None) == []
    assert seal_notes(opened(opening(4)), ROUNDS) == seal_notes(opened(opening(4), opening(4)), ROUNDS) == []
    assert seal_notes(Opened.from_dict({"first_opened": "before openings were listed", "by_version": "0"}), None) == []


def test_a_peek_is_told_with_its_day_and_runs():
    notes = seal_notes(opened(opening(1, peek=True), opening(5)), None)
    assert notes[0] == (
        "The test results of 1 run were looked at on 2026-01-02T10:00:00+00:00, before the study had ended."
    )
    assert "what those before left" in notes[1] and len(notes) == 2
    assert "they hold whatever made the study end" in seal_notes(opened(opening(2, peek=True)), ROUNDS)[-1]


def test_a_list_that_was_damaged_is_told():
    (note,) = seal_notes(opened(opening(4), lost="2026-02-02"), None)
    assert "damaged on 2026-02-02" in note and "may be higher" in note


def test_seeds_added_after_a_report_are_told():
    notes = seal_notes(opened(opening(4), opening(5), opening(6)), None)
    assert "after the test set had been opened, 2 times" in notes[0] and "what those before left" in notes[1]


def test_what_is_still_to_do(store, demo):
    assert still_to_do(store) == "1 of 24 runs are still to do"
    store.put(demo.record_of(*demo.MISSING), {"test": demo.simulated(*demo.MISSING)})
    assert still_to_do(store) is None  # a failed run is done
    store.write_json("sequential.json", {**ROUNDS.to_dict(), "ended": None})
    assert still_to_do(store) == "it is in the middle of its rounds"


def test_a_peek_stays_in_every_later_report(store, demo):
    """The fixture lacks a run: its report is a peek, and so says the one after that run has come."""
    write_report(store)
    store.put(demo.record_of(*demo.MISSING), {"test": demo.simulated(*demo.MISSING)})
    page = write_report(store)
    assert "before the study had ended" in page.read_text()
    assert "before the study had ended" in (store.path / "report.md").read_text()
    verdict = json.loads((store.path / "verdict.json").read_text())
    assert len(verdict["seal"]) == 2 and "22 runs" in verdict["seal"][0]
    assert any("before the study had ended" in text for _, text in provenance(collect(store)))


@pytest.mark.parametrize(
    ("priority", "metric", "better"),
    [
        ({"prior": "natural"}, "natural_accuracy", max),
        ({"prior": "balanced", "costs": [[0.0] + [1.0] * 9] * 10}, "cost", min),
    ],
    ids=["natural", "cost"],
)
def test_the_report_of_a_priority(store, demo, priority, metric, better):
    plain = {"metric": metric, "priority": {"metric": metric, "costs": None, **priority}}
    store.write_json("study.json", store.read_json("study.json") | plain)
    results = collect(store)
    assert (results.metric, results.verdict.higher_is_better) == (metric, better is max)
    means = [m.estimates[metric].mean for m in sorted(results.methods, key=lambda m: m.rank)]
    assert means == sorted(means, reverse=better is max)
    test = demo.simulated("plain", 0)
    predicted, counts = test["logits"].argmax(1), demo.CLASS_COUNTS
    recall = [(predicted[test["labels"] == c] == c).mean() for c in range(10)]
    first = next(m for m in results.methods if m.name == "plain").runs[0].metrics[metric]
    natural = sum(n * r for n, r in zip(counts, recall, strict=True)) / sum(counts)
    assert first == pytest.approx(natural if metric != "cost" else (predicted != 0).mean())
    assert metric in (write_report(store).parent / "results.csv").read_text().splitlines()[0]


def test_a_study_in_rounds_without_its_plan_is_not_reported_as_one_with_fixed_seeds(store):
    study = store.read_json("study.json")
    store.write_json("study.json", {**study, "rounds": True})
    with pytest.raises(EquipoiseError, match=r"sequential.json is damaged: it is gone\. Restore it"):
        collect(store)
