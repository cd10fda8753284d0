"""Confusion matrices."""

import math
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from equipoise.report.figures import confusion_plot, worst_confusions
from equipoise.report.figures.confusion import GROUPS


def cells(plot):
    """(row, column, opacity) of each cell of a drawing with ten rows."""
    side = 296 / 10
    for rect in ET.fromstring(str(plot)).iter("rect"):
        if "cell" in rect.get("class"):
            x, y = float(rect.get("x")), float(rect.get("y"))
            yield round((y - 40.5) / side), round((x - 76.5) / side), float(rect.get("fill-opacity"))


def test_cells_are_shares_of_the_true_class(results, demo):
    method = next(m for m in results.methods if m.name == "ldam")
    counts = np.zeros((10, 10))
    for seed in range(6):
        test = demo.simulated("ldam", seed)
        np.add.at(counts, (test["labels"], test["logits"].argmax(1)), 1)
    shares = counts / counts.sum(axis=1, keepdims=True)
    drawn = {(row, column): opacity for row, column, opacity in cells(confusion_plot(results, method))}
    assert set(drawn) == set(zip(*counts.nonzero(), strict=True))
    for (row, column), opacity in drawn.items():
        assert opacity == pytest.approx(math.sqrt(shares[row, column]), abs=0.006)


def test_the_worst_confusions_by_share(results):
    method = replace(results.reference, confusion={(0, 0): 90, (0, 1): 10, (5, 5): 1, (5, 2): 3, (2, 2): 7})
    assert worst_confusions(results, method) == [("five", "two", 0.75, 3), ("zero", "one", 0.1, 10)]
    assert "five taken for two in 75.0 %" in confusion_plot(results, method)


def test_of_many_classes_neighbours_share_a_row(results):
    names, counts = tuple(f"c{c}" for c in range(100)), tuple(range(200, 100, -1))
    confusion = {(c, c): 8 for c in range(100)} | {(99, 0): 2}
    many = replace(results, class_names=names, class_counts=counts)
    plot = confusion_plot(many, replace(results.reference, confusion=confusion))
    found = [r for r in ET.fromstring(str(plot)).iter("rect") if "cell" in r.get("class")]
    assert len(found) == GROUPS + 1
    assert "200–196" in plot
    wrong = [float(r.get("fill-opacity")) for r in found if r.get("class") == "cell wrong"]
    assert wrong == [pytest.approx(math.sqrt(2 / 42), abs=0.006)]
