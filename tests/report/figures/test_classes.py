"""Accuracy class by class."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from equipoise.report import collect
from equipoise.report.figures import class_bars, class_plot, size_plot
from equipoise.report.figures.classes import BARS


@pytest.fixture(scope="module")
def many(results):
    """The same methods on sixty classes, of 600 to 10 images."""
    names, counts = tuple(f"class {c}" for c in range(60)), tuple(600 - 10 * c for c in range(60))
    methods = tuple(replace(m, per_class=m.per_class * 6) for m in results.methods)
    return replace(results, methods=methods, class_names=names, class_counts=counts)


def test_sizes_are_on_a_logarithmic_scale_with_the_largest_first(results, groups, demo):
    parts = groups(size_plot(results))
    plain = results.reference
    x = np.array([float(c.get("cx")) for c in parts["0"].iter("circle")])
    y = np.array([float(c.get("cy")) for c in parts["0"].iter("circle")])
    assert np.corrcoef(x, np.log(demo.CLASS_COUNTS))[0, 1] == pytest.approx(-1, abs=1e-6)
    assert np.corrcoef(y, [e.mean for e in plain.per_class])[0, 1] == pytest.approx(-1, abs=1e-4)


def test_of_many_classes_the_line_joins_means(many, groups):
    group = groups(size_plot(many))["0"]
    line = next(p for p in group.iter("path") if p.get("class") == "line").get("d")
    assert line.count("L") == 9  # ten groups of six classes
    assert len(list(group.iter("circle"))) == 60
    assert class_plot(many) == ""


def test_classes_of_one_size_need_no_scale_of_sizes(results):
    assert size_plot(replace(results, class_counts=(50,) * 10)) == ""


def test_whiskers_are_the_intervals(results, groups):
    group = groups(class_plot(results))["1"]
    d = next(p for p in group.iter("path") if p.get("class") == "whisker").get("d")
    pieces = [[float(point.split(",")[1]) for point in piece.split("L")] for piece in d.split("M")[1:]]
    known = [results.methods[0].per_class[c] for c in results.by_size]
    assert results.methods[0].index == 1
    lengths = np.array([low - high for low, high in pieces])
    assert np.corrcoef(lengths, [min(e.high, 1) - e.low for e in known])[0, 1] > 0.99


def test_bars_are_as_tall_as_the_accuracies(results, groups):
    plot = class_bars(results, results.methods[1])
    bars = [float(r.get("height")) for r in groups(plot)[str(results.methods[1].index)].iter("rect")]
    expected = [results.methods[1].per_class[c].mean for c in results.by_size]
    assert np.array(bars) / 178 == pytest.approx(expected, abs=1e-3)
    assert any(p.get("class") == "reference" for p in ET.fromstring(str(plot)).iter("path"))
    assert not any(p.get("class") == "reference" for p in ET.fromstring(class_bars(results, results.reference)).iter())


def test_bars_of_many_classes_are_means(many, groups):
    bars = list(groups(class_bars(many, many.methods[0]))[str(many.methods[0].index)].iter("rect"))
    assert len(bars) == BARS
    first = np.mean([e.mean for e in many.methods[0].per_class[:3]])
    assert float(bars[0].get("height")) / 178 == pytest.approx(first, abs=1e-3)


def test_a_class_without_test_images_leaves_a_gap(store, demo, groups):
    for method in demo.METHODS:
        for seed in range(6):
            test = demo.simulated(method, seed)
            keep = test["labels"] != 3
            store.remove(demo.key_of(method, seed))
            store.put(demo.record_of(method, seed), {"test": {k: v[keep] for k, v in test.items()}})
    results = collect(store)
    assert len(list(groups(class_bars(results, results.methods[0]))[str(results.methods[0].index)].iter("rect"))) == 9
    assert len(list(groups(size_plot(results))["0"].iter("circle"))) == 9
