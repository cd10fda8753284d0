"""The picture of a task: its rows are those of the records, its marks stand where their numbers are."""

import re
from pathlib import Path

import pytest

from equipoise.reproduction.picture import Ours, Row, picture, pictures
from equipoise.reproduction.published import Cell, Paper, Point
from equipoise.reproduction.records import RunRecord, StudyRecords

TASK = {"name": "cifar10", "imbalance": "long_tailed", "ratio": 100.0}
PLAN = {"epochs": 200, "weight_decay": 5e-4}


def records(name: str, scores: dict[str, list[float]], task: dict = TASK) -> StudyRecords:
    runs = tuple(
        RunRecord(method, seed, f"{name}{method}{seed}", "", {"accuracy": score}, 1, 1.0, "2026-01-01", "cpu", {})
        for method, of_method in scores.items()
        for seed, score in enumerate(of_method)
    )
    methods = {method: {"task": task, "plan": PLAN} for method in scores}
    return StudyRecords(name, "?", next(iter(scores)), "accuracy", methods, runs)


def paper(*cells: Cell) -> Paper:
    return Paper("A paper", "paper", "", cells)


def cell(study: str, method: str, printed: str, metric: str = "error") -> Cell:
    return Cell("table 1", study, method, metric, printed, "")


def texts(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_all_studies_of_a_task_are_in_one_picture_best_first():
    first = records("first", {"plain": [0.70, 0.72, 0.74], "focal": [0.60, 0.61], "ldam": [0.75, 0.76, 0.77]})
    second = records("second", {"best": [0.80, 0.81, 0.82, 0.81, 0.80], "of three": [0.7, 0.7, 0.8]})
    published = paper(cell("first", "plain", "29.64"), cell("first", "ldam", "24"))
    drawn = pictures([published], {"first": first, "second": second})
    (svg,) = drawn.values()
    assert list(drawn) == ["cifar10_long_tailed_ratio100.svg"]
    said = texts(svg)
    assert said.index("best") < said.index("plain") and "focal" not in said  # two runs have no interval to speak of
    # s = 0.02, t = 4.303: 72 ± 4.303 · 2 / √3
    assert "72.0 [67.0, 77.0], n = 3; published 70.4" in said
    assert "A paper, table 1" in said and "200 epochs, decay 0.0005" in said
    assert "of three" not in said  # of a study of ours, with no published number to compare them with


@pytest.mark.parametrize(
    ("task", "cells"),
    [(TASK, []), (TASK, [cell("first", "plain", "3.1", "gain in accuracy")]), ({"name": "cifar10"}, [])],
    ids=["nothing is published", "gains only", "balanced data"],
)
def test_without_published_accuracies_there_is_no_picture(task, cells):
    assert not pictures([paper(*cells)], {"first": records("first", {"plain": [0.7, 0.7, 0.8]}, task)})


def test_other_papers_stand_where_their_numbers_are():
    first = records("first", {"plain": [0.70, 0.72, 0.74]})
    points = [
        Point("theirs", "their page", {"cifar10_long_tailed_ratio100": 73.5}),
        Point("others", "another page", {"cifar10_long_tailed_ratio100": 71.0}),
        Point("of another task", "their page", {"cifar100_long_tailed_ratio100": 50.0}),
    ]
    (svg,) = pictures([paper(cell("first", "plain", "29.64"))], {"first": first}, points).values()
    said = texts(svg)
    assert said.index("theirs") < said.index("plain") and "of another task" not in said
    assert "their page" in said and "published 73.5" in said


def test_two_numbers_have_no_picture():
    first = records("first", {"plain": [0.70, 0.72, 0.74], "ldam": [0.75, 0.76, 0.77]})
    assert not pictures([paper(cell("first", "plain", "29.64"), cell("first", "ldam", "24"))], {"first": first})


def test_marks_on_a_short_axis_have_numbers_of_their_own():
    rows = [
        Row(name, "here", "paper", Ours(5, mean, mean - 0.2, mean + 0.2), None)
        for name, mean in (("a", 86.5), ("b", 87))
    ]
    marks = re.findall(r'text-anchor="middle">([\d.]+)</text>', picture("t", rows))
    assert len(marks) > 3 and len(set(marks)) == len(marks)


def test_marks_stand_where_the_axis_says():
    rows = [
        Row("a", "here", "paper", Ours(3, 70.0, 69.0, 71.0), 80.0),
        Row("b", "here", "own", Ours(3, 80.0, 79.0, 81.0), None),
        Row("c", "there", "elsewhere", None, 70.0),
    ]
    svg = picture("t", rows)
    ticks = {text: float(x) for x, text in re.findall(r'<text class="muted" x="([\d.]+)"[^>]*>(\d+)</text>', svg)}
    dots = [float(x) for x in re.findall(r'class="dot" cx="([\d.]+)"', svg)][2:]  # the first two are the legend's
    assert dots == pytest.approx([ticks["70"], ticks["80"]], abs=0.02)
    diamonds = [float(x) for x in re.findall(r'class="printed" d="M([\d.]+),', svg)][1:]
    assert diamonds == pytest.approx([ticks["80"], ticks["70"]], abs=0.02)


def test_the_legend_has_the_marks_that_rows_have():
    paper_row = Row("a", "here", "paper", Ours(5, 70.0, 69.0, 71.0), 80.0)
    own_row = Row("b", "here", "own", Ours(5, 80.0, 79.0, 81.0), None)
    for rows, kinds in (([paper_row], ["paper"]), ([own_row], ["own"]), ([own_row, paper_row], ["paper", "own"])):
        legend = picture("t", rows).split("as published")[0]
        keys = re.findall(r'<g class="(paper|own)"><circle class="dot" cx="([\d.]+)"', legend)
        assert [kind for kind, _ in keys] == kinds
        assert float(keys[0][1]) < 400, "they begin where the axis does"


def test_names_are_text_and_the_repository_has_the_picture():
    svg = picture("t", [Row("<script>x</script>", "<b>", "own", Ours(3, 1.0, 0.5, 1.5), None)])
    assert "<script>" not in svg and "&lt;script&gt;" in svg
    assert list((Path(__file__).parents[2] / "docs" / "results" / "tables").glob("*.svg"))
