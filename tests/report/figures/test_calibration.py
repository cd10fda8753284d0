"""Reliability diagrams."""

import re
from dataclasses import replace

import pytest

from equipoise.report.collected import Bin
from equipoise.report.figures import reliability_diagram, reliability_plot


def drawn(plot):
    """The marks, and the points of the line, of the last method drawn."""
    last = plot[plot.rindex("<g ") :]
    line = re.search(r'class="line" d="M([^"]*)"', last).group(1)
    points = [tuple(map(float, point.split(","))) for point in line.split("L")]
    return [tuple(map(float, pair)) for pair in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', last)], points


def test_a_mark_stands_at_confidence_and_accuracy(results):
    """Half the predictions 50 % sure and 40 % right, half 90 % and all right."""
    bins = [Bin(0, 0.0, 0)] * 15
    bins[7], bins[13] = Bin(100, 50.0, 40), Bin(100, 90.0, 100)
    method = replace(results.reference, reliability=tuple(bins))
    expected = [(38 + 0.5 * 326, 262 - 0.4 * 232), (38 + 0.9 * 326, 262 - 232)]
    for plot in (reliability_diagram(method), reliability_plot(replace(results, methods=(method,)))):
        for found in drawn(plot):
            assert [x for point in found for x in point] == pytest.approx([x for p in expected for x in p], abs=0.01)


def test_the_gap_reaches_from_the_line_to_the_diagonal(results):
    bins = [Bin(0, 0.0, 0)] * 15
    bins[7], bins[13] = Bin(100, 50.0, 40), Bin(100, 90.0, 100)
    plot = reliability_diagram(replace(results.reference, reliability=tuple(bins)))
    band = re.search(r'class="band" d="M([^"]*)Z"', plot).group(1)
    heights = [float(point.split(",")[1]) for point in band.split("L")]
    assert heights == pytest.approx([262 - 232 * share for share in (0.4, 1.0, 0.9, 0.5)], abs=0.01)


def test_bins_of_hardly_any_sample_have_no_mark(results):
    bins = [Bin(0, 0.0, 0)] * 15
    bins[7], bins[13] = Bin(1, 0.5, 1), Bin(10_000, 9000.0, 9000)
    plot = reliability_diagram(replace(results.reference, reliability=tuple(bins)))
    assert len(drawn(plot)[0]) == 1


def test_the_title_names_the_error_with_its_interval(results):
    ece = results.reference.estimates["ece"]
    assert f"(ECE {100 * ece.mean:.1f} ± {100 * ece.half:.1f})" in reliability_diagram(results.reference)
