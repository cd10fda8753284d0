"""Sections that a study may have."""

import json

import pytest
from markupsafe import Markup

from equipoise.report import Section, render_page, sections, sections_of, write_report
from equipoise.report.sections.sensitivity import trials_of
from equipoise.store import Sensitivity

TUNED = {
    "schema": 1, "metric": "balanced_accuracy", "higher_is_better": True,
    "methods": [
        {"name": "focal", "best": 0.8, "dials": [
            {"dial": "loss.gamma", "scale": "linear", "chosen": 2.0, "at_edge": False, "points": [
                {"value": 1.0, "marginal": 0.7, "slice": None, "trials": 2},
                {"value": 2.0, "marginal": 0.8, "slice": 0.8, "trials": 1},
                {"value": 3.0, "marginal": None, "slice": None, "trials": 0},
            ]},
        ]},
        {"name": "plain", "best": None, "dials": []},
    ],
}  # fmt: skip


def further(store, results):
    """The sections of more than the runs."""
    return [section for section in sections_of(store, results) if section.further]


def test_every_study_has_sections_of_its_classes_training_and_calibration(store, results):
    classes, training, calibration = sections_of(store, results)
    assert (classes.name, classes.menu) == ("classes", "Classes")
    assert len(classes.folded.table.rows) == 10
    assert (training.name, training.folded, calibration.name) == ("training", None, "calibration")
    assert classes.titled and training.figures and calibration.figures  # how many is for each section to say


def test_sensitivity_is_shown_where_it_was_measured(store, results):
    assert further(store, results) == []
    store.write_text("sensitivity.json", json.dumps(TUNED))
    assert [(t.method, t.dial, t.value, t.score.mean) for t in trials_of(store.document(Sensitivity))] == [
        ("focal", "loss.gamma", 1.0, 0.7),
        ("focal", "loss.gamma", 2.0, 0.8),
    ]
    page = write_report(store).read_text()
    assert '<section id="sensitivity"' in page
    assert 'href="#sensitivity"' in page


@pytest.mark.parametrize(
    "content", [{}, [], {"methods": 3}, [1, 2], TUNED | {"methods": [{"name": "x"}]}, TUNED | {"schema": 99}, 7]
)
def test_what_is_no_sensitivity_is_said_in_its_place(store, results, content):
    store.write_text("sensitivity.json", json.dumps(content))
    (told,) = further(store, results)
    assert told.name == "sensitivity" and not told.figures
    assert told.sentence.startswith("This cannot be shown: ") and "sensitivity.json" in told.sentence
    page = write_report(store).read_text()
    assert "This cannot be shown" in page


def test_tuning_that_tried_nothing_makes_no_section(store, results):
    store.write_text("sensitivity.json", json.dumps(TUNED | {"methods": []}))
    assert further(store, results) == []


def test_a_section_of_ones_own(store, results, monkeypatch):
    """Adding a function to the list is all that a new section takes."""

    def similarity(its_store, its_results):
        assert (its_store, its_results) == (store, results)
        return Section(
            "similarity", "Similarity", "Who is <like> whom.", (Markup("<svg role='img'></svg>"),), legend=False
        )

    monkeypatch.setattr(sections, "SECTIONS", (lambda store, results: None, similarity))
    found = sections_of(store, results)
    page = render_page(results, found)
    assert [section.name for section in found] == ["similarity"]
    part = page[page.index('<section id="similarity"') :].partition("</section>")[0]
    assert "Who is &lt;like&gt; whom." in part and "<svg role='img'></svg>" in part
    assert 'class="legend"' not in part
    assert '<a href="#similarity">Similarity</a>' in page
