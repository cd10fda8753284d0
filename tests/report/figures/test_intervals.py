"""Intervals stand where the numbers say."""

from dataclasses import replace

import pytest

from equipoise.report import collect
from equipoise.report.figures import MOST_ROWS, interval_plot, score_plot


@pytest.mark.parametrize("wide", [True, False])
def test_differences_stand_where_the_numbers_say(results, groups, wide):
    """Positions are a straight line of the differences, with zero at the baseline's mark."""
    parts = groups(interval_plot(results, wide))
    zero = [float(c.get("cx")) for c in parts["0"].iter("circle")][-1]
    points = []
    for method in results.methods:
        if not method.is_baseline:
            circles = list(parts[str(method.index)].iter("circle"))
            seeds = [float(c.get("cx")) for c in circles if c.get("class") == "seed"]
            assert len(seeds) == len(method.differences)
            points += list(zip(seeds, [d for _, d in method.differences], strict=True))
            points.append((float(circles[-1].get("cx")), method.result.difference))
    slope = (points[0][0] - zero) / points[0][1]
    assert slope > 0
    for x, difference in points:
        assert x - zero == pytest.approx(slope * difference, abs=0.05)


def test_an_interval_that_leaves_the_drawing_ends_in_an_arrow(results, groups):
    """Two pairs have t = 12.7: such an interval must not shrink all else to a dot."""
    first = results.methods[0]
    wild = replace(first, result=replace(first.result, diff_low=-40.0))
    for method, arrows in ((first, 0), (wild, 1)):
        plot = interval_plot(replace(results, methods=(method, *results.methods[1:])))
        bar = next(p for p in groups(plot)[str(first.index)].iter("path") if p.get("class") == "range")
        _, *ends = [[float(p.split(",")[0]) for p in piece.split("L")] for piece in bar.get("d").split("M")[1:]]
        assert sum(back != tip for back, tip, _ in ends) == arrows
        assert all(0 < x < 1120 for end in ends for x in end)


def test_a_band_for_new_images_lies_behind_the_interval(results, groups):
    parts = groups(interval_plot(results))
    for method in results.methods:
        classes = [part.get("class") for part in parts[str(method.index)].iter()]
        assert [c for c in classes if c in ("band", "range")] == ([] if method.is_baseline else ["band", "range"])


def test_of_many_methods_the_best_and_the_baseline_are_drawn(results, groups):
    many = [replace(results.methods[0], index=i, rank=i - 1) for i in range(1, 30)]
    baseline = replace(results.reference, rank=29)
    crowd = replace(results, methods=(*many, baseline))
    shown = set(groups(interval_plot(crowd, most=MOST_ROWS)))
    assert shown == {str(i) for i in range(MOST_ROWS)}
    assert len(groups(interval_plot(crowd))) == 30


def test_without_pairs_there_is_no_drawing(store, demo):
    for seed in range(6):
        store.remove(demo.key_of("plain", seed))
    assert interval_plot(collect(store)) == ""


@pytest.mark.parametrize("metric", ["ece", "nll", "accuracy"])
def test_scores_are_in_order_of_worth(results, groups, metric):
    parts = groups(score_plot(results, metric))
    heights = {m.name: float(next(parts[str(m.index)].iter("circle")).get("cy")) for m in results.methods}
    sign = -1 if metric == "accuracy" else 1
    best_first = sorted(results.methods, key=lambda m: sign * m.estimates[metric].mean)
    assert sorted(heights, key=heights.get) == [m.name for m in best_first]
    middles = {m.name: float(list(parts[str(m.index)].iter("circle"))[-1].get("cx")) for m in results.methods}
    by_value = sorted(results.methods, key=lambda m: m.estimates[metric].mean)
    assert sorted(middles, key=middles.get) == [m.name for m in by_value]
