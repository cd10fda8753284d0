"""Training curves."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from equipoise.report.collected import Estimate
from equipoise.report.figures import curve_plot
from equipoise.report.figures.curves import MOST_POINTS


def points(group, kind="line"):
    d = next(p for p in group.iter("path") if p.get("class") == kind).get("d")
    return np.array([[float(v) for v in pair.split(",")] for pair in re.findall(r"[-\d.]+,[-\d.]+", d)])


def test_a_line_is_the_mean_of_each_epoch(results, groups):
    line = points(groups(curve_plot(results, "valid_balanced_accuracy"))["0"])
    means = [e.mean for e in results.reference.curves["valid_balanced_accuracy"]]
    assert len(line) == 30
    assert np.corrcoef(line[:, 1], means)[0, 1] == pytest.approx(-1, abs=1e-3)  # upwards on a screen is less
    assert np.allclose(np.diff(line[:, 0], 2), 0, atol=0.02)


def test_the_band_goes_there_and_back(results, groups):
    assert len(points(groups(curve_plot(results, "train_loss"))["0"], "band")) == 60


def test_losses_of_very_unlike_size_get_a_log_scale(results):
    assert "log scale" in curve_plot(results, "train_loss")
    assert "log scale" not in curve_plot(results, "valid_balanced_accuracy")


def test_one_method_above_the_baseline(results, groups):
    method = next(m for m in results.methods if m.name == "ldam")
    plot = curve_plot(results, "train_loss", [results.reference, method])
    assert list(groups(plot)) == ["0", str(method.index)]


def test_a_long_curve_is_thinned_and_keeps_its_end(results, groups):
    curve = tuple(Estimate(3, 1 / t, 0.9 / t, 1.1 / t) for t in range(1, 1001))
    long = replace(results, methods=tuple(replace(m, curves={"train_loss": curve}) for m in results.methods))
    line = points(groups(curve_plot(long, "train_loss"))["0"])
    assert len(line) <= MOST_POINTS + 1
    assert line[-1, 0] == 364


def test_a_curve_nobody_has(results):
    assert curve_plot(results, "no such curve") == ""


def test_a_curve_called_an_accuracy_that_is_no_share(results):
    curve = tuple(Estimate(1, 20.0 * t, math.nan, math.nan) for t in range(5))
    odd = replace(results, methods=tuple(replace(m, curves={"my_accuracy": curve}) for m in results.methods))
    assert "8,000" in curve_plot(odd, "my_accuracy") or "8000" in curve_plot(odd, "my_accuracy")
