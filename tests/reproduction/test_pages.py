"""The pages: those of the repository are what the records give, and what a page says of a few runs."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from equipoise.core import EquipoiseError
from equipoise.reproduction import Cell, RunRecord, StudyRecords, keep_records, records_of, write_tables
from equipoise.reproduction.measures import measures_page
from equipoise.reproduction.pages import BEGIN, END, Results, paper_page, recorded_page
from equipoise.reproduction.published import Paper

from .conftest import document, paper_text

ROOT = Path(__file__).parents[2]
RESULTS, PUBLISHED = ROOT / "docs" / "results", ROOT / "studies" / "papers" / "published"


def test_pages_of_the_repository_are_what_the_records_give(tmp_path):
    (tmp_path / "records").symlink_to(RESULTS / "records")
    shutil.copy(RESULTS / "README.md", tmp_path)
    written = {path.relative_to(tmp_path): path.read_text() for path in write_tables(tmp_path, PUBLISHED)}
    there = {path.relative_to(RESULTS): path.read_text() for path in (RESULTS / "tables").iterdir()}
    assert written == {**there, Path("README.md"): (RESULTS / "README.md").read_text()}, "run `equipoise tables`"


@pytest.fixture
def written(store, tmp_path):
    """The pages of a paper with two studies, of which one has runs: plain 60, 70, 80 %, focal 90 % each time."""
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "paper.toml").write_text(
        paper_text(
            ["small", "large"],
            "plain | 71.0 80.0\nfocal | 85.0 81.0\nother | 86.5 -",
            '[table.differs]\nother = "more epochs"',
        )
    )
    keep_records([records_of(document(), store), records_of(document(name="ours"), store)], tmp_path / "records")
    (tmp_path / "README.md").write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    paths = write_tables(tmp_path, tmp_path / "published")
    return {path.relative_to(tmp_path).as_posix(): path.read_text() for path in paths}


def test_every_published_number_has_a_state(written):
    page = written["tables/paper.md"]
    assert "5 numbers: 1 outside, 1 inside, 3 not run." in page
    # mean 70, s = 10, n = 3, one published run: ± 4.303 · 10 · sqrt(4/3) = 49.7
    assert "| plain | 71.0 | 70.0 | 3 | [20.3, 119.7] | *inside* |" in page
    assert "| focal | 85.0 | 90.0 | 3 | [90.0, 90.0] | *outside* |" in page
    assert "| other | 86.5 | – | – | – | *not run* |" in page
    assert "- Recipe differs (other): more epochs." in page
    assert "- `large`. plain: 80.0; focal: 81.0" in page


def test_methods_whose_runs_learned_nothing_are_named():
    shown = RunRecord("plain", 0, "k0", "d", {"accuracy": 0.9}, 1, 1.0, "2026-11-01", "CPU", {})
    scores = {"accuracy": 0.1, "balanced_accuracy": 0.1, "macro_f1": 0.0181818, "worst_class": 0.0}
    lost = replace(shown, key="k1", seed=1, metrics=scores)
    cell = Cell("table 1", "study", "plain", "accuracy", "90", "")
    study = StudyRecords("study", "?", "plain", "accuracy", {"plain": {"plan": {"epochs": 3}}}, (shown, lost))
    paper = Paper("A paper", "paper", "Somebody.", (cell,))
    for page in (paper_page(paper, Results([paper], {"study": study})), recorded_page([study])):
        assert "- Learned nothing (plain): 1 of 2 runs named one class for all images." in page


def test_a_study_says_where_its_numbers_come_from(written):
    told = (
        "After the last epoch (30); 3 subsets, the first with data images0; CPU x86_64; equipoise 0.1.0, torch 2.11.0; "
    )
    assert told + "2026-11-01 to 2026-11-03." in written["tables/paper.md"]


def test_the_index_begins_with_what_did_not_reproduce(written):
    text = written["README.md"]
    told = "2 of 5 published numbers have been compared with runs of ours; outside are:"
    first = "- A paper, table 1, `small`, focal: published 85.0, here 90.0 [90.0, 90.0], n = 3"
    assert text.startswith(f"before\n{BEGIN}\n\n{told}\n\n{first}\n\n| paper")
    assert "| [A paper](tables/paper.md) | 5 | 1 | – | – | 1 | – | 3 |" in text
    assert text.endswith(f"{END}\nafter\n") and "old" not in text


def test_studies_of_no_paper_have_a_page(written):
    page = written["tables/recorded.md"]
    assert "## `ours`" in page and "`small`" not in page
    # ± 4.303 · 10 / sqrt(3) = 24.8; differences 30, 20, 10: 20 ± 24.8, of 8 patterns of signs two are as extreme
    assert "| plain | 70.0 | [45.2, 94.8] | 3 | – | – | baseline | [20.3, 119.7] |" in page
    assert "| focal | 90.0 | [90.0, 90.0] | 3 | +20.0 [−4.8, +44.8] | 0.25 | not separable | [90.0, 90.0] |" in page
    assert page.index("| focal |") < page.index("| plain |")
    assert "3 pairs cannot support any claim: the least p of an exact sign-flip test is then 2/2^3 = 0.25" in page


def test_what_is_separable_is_said_and_what_was_not_run_too():
    def runs(method, scores):
        return [
            RunRecord(method, seed, f"{method}{seed}", "", {"accuracy": score}, 1, 1.0, "2026-01-01", "cpu", {})
            for seed, score in enumerate(scores)
        ]

    methods = {name: {"plan": {"epochs": 9}} for name in ("plain", "better", "later", "alone")}
    plain, better = [0.70, 0.71, 0.69, 0.70, 0.72, 0.71], [0.73, 0.75, 0.71, 0.74, 0.73, 0.74]
    done = [*runs("plain", plain), *runs("better", better)]
    study = StudyRecords("ours", "What is better?", "plain", "accuracy", methods, tuple(done))
    page = recorded_page([study])
    # all six differences point one way: p = 2 / 64
    assert "| better | 73.3 |" in page and "| 0.031 | better |" in page
    assert "Not run: later; alone." in page and "cannot support" not in page
    without_baseline = replace(study, runs=tuple(runs("better", better)))
    assert "| better | 73.3 | [71.9, 74.8] | 6 | – | – | no data |" in recorded_page([without_baseline])


def test_what_else_the_runs_come_to(written):
    """Plain has 60, 70, 80 %: ± 4.303 · 10 / sqrt(3); the runs of the fixture have nothing but their accuracies."""
    page = written["tables/measures.md"]
    assert "| method | n | Accuracy\u00a0% | Worst class\u00a0% |" in page
    assert "| plain | 3 | 70.0 ± 24.8 |" in page and "| focal | 3 | 90.0 ± 0.0 |" in page
    runs = [
        RunRecord("plain", seed, f"k{seed}", "d", scores, 1, 1.0, "2026-11-01", "CPU", {})
        for seed, scores in enumerate([{"accuracy": 0.5, "few": 0.25, "nll": 1.5}])
    ]
    uneven = {"plain": {"task": {"imbalance": "long_tailed"}}, "never run": {}}
    page = measures_page([StudyRecords("study", "?", "plain", "accuracy", uneven, tuple(runs))])
    assert "| Many\u00a0% | Medium\u00a0% | Few\u00a0% | NLL\u00a0nats | ECE\u00a0% |" in page
    assert page.endswith("| plain | 1 | 50.0 | – | – | – | 25.0 | 1.500 | – |\n")


def test_a_readme_without_a_place_for_the_index_is_refused(written, tmp_path):
    (tmp_path / "README.md").write_text("nothing")
    with pytest.raises(EquipoiseError, match="has no place for the index"):
        write_tables(tmp_path, tmp_path / "published")
