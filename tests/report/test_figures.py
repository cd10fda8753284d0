"""Drawings: well-formed, every method in its colour, marks where the numbers say."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from equipoise.report import class_plot, collect, curve_plot, interval_plot
from equipoise.report.svg import COLOURS, SHAPES, Scale, decimals, limits, marker


def groups(markup):
    """The parts of each method, by its index."""
    return {g.get("data-method"): g for g in ET.fromstring(str(markup)).iter("g") if g.get("data-method")}


def drawings(results):
    plots = [f(results, wide) for f in (interval_plot, class_plot) for wide in (True, False)]
    return plots + [curve_plot(results, name) for name in results.curve_names]


def test_all_are_well_formed_and_say_what_they_show(store):
    results = collect(store)
    for plot in drawings(results):
        root = ET.fromstring(str(plot))
        assert root.get("role") == "img"
        assert len(root.get("aria-label")) > 30
        assert {"0", "1", "2", "3"} == set(groups(plot))


def test_a_method_has_one_colour_in_all(store):
    seen = {}
    for plot in drawings(collect(store)):
        for index, group in groups(plot).items():
            seen.setdefault(index, set()).add(group.get("class"))
    assert seen == {"0": {"series m0"}, "1": {"series m1"}, "2": {"series m2"}, "3": {"series m3"}}


def test_no_two_methods_look_alike():
    looks = {str(marker(i, 0.0, 0.0, 4.0)) + str((i - 1) % COLOURS) for i in range(1, COLOURS * SHAPES + 1)}
    assert len(looks) == COLOURS * SHAPES


@pytest.mark.parametrize("wide", [True, False])
def test_intervals_stand_where_the_numbers_say(store, wide):
    """Positions are a straight line of the differences: zero at the baseline's mark, and means between their ends."""
    results = collect(store)
    parts = groups(interval_plot(results, wide))
    zero = [float(c.get("cx")) for c in parts["0"].iter("circle")][-1]
    points = []
    for method in results.methods:
        if not method.is_baseline:
            circles = list(parts[str(method.index)].iter("circle"))
            seeds = [float(c.get("cx")) for c in circles if c.get("class") == "seed"]
            mean = float(circles[-1].get("cx"))
            assert len(seeds) == len(method.differences)
            points += list(zip(seeds, [d for _, d in method.differences], strict=True))
            points.append((mean, method.result.difference))
    slope = (points[0][0] - zero) / points[0][1]
    assert slope > 0
    for x, difference in points:
        assert x - zero == pytest.approx(slope * difference, abs=0.05)


def test_an_interval_that_leaves_the_drawing_ends_in_an_arrow(store):
    """Two pairs have t = 12.7: such an interval must not shrink all else to a dot."""
    results = collect(store)
    first = results.methods[0]
    wild = replace(first, result=replace(first.result, diff_low=-40.0))
    for method, arrows in ((first, 0), (wild, 1)):
        plot = interval_plot(replace(results, methods=(method, *results.methods[1:])))
        bar = next(p for p in groups(plot)[str(first.index)].iter("path") if p.get("class") == "range")
        _, *ends = [[float(p.split(",")[0]) for p in piece.split("L")] for piece in bar.get("d").split("M")[1:]]
        assert sum(back != tip for back, tip, _ in ends) == arrows
        assert all(0 < x < 1120 for end in ends for x in end)


def test_a_hostile_name_stays_text(store):
    text = store.path / "study.json"
    text.write_text(text.read_text().replace('"name": "ldam"', '"name": "<script>alert(1)</script>&\\""'))
    for plot in drawings(collect(store)):
        assert "<script" not in plot
        ET.fromstring(str(plot))


def test_nothing_to_draw(tmp_path, demo, store):
    for seed in range(6):
        store.remove(demo.key_of("plain", seed))
    results = collect(store)
    assert interval_plot(results) == ""
    assert class_plot(results) != ""
    assert curve_plot(results, "no such curve") == ""


def test_many_classes_lose_their_dots_but_not_their_lines(store, demo):
    names, counts = tuple(f"class {c}" for c in range(60)), tuple(range(100, 40, -1))
    for method in demo.METHODS:
        for seed in range(6):
            store.remove(demo.key_of(method, seed))
            test = demo.simulated(method, seed)
            wide = {"logits": test["logits"].repeat(6, axis=1), "labels": test["labels"] * 6}
            store.put(demo.record_of(method, seed, class_names=names, class_counts=counts), {"test": wide})
    root = ET.fromstring(str(class_plot(collect(store))))
    assert not list(root.iter("circle"))
    assert len([p for p in root.iter("path") if p.get("class") == "line thin"]) == 4
    assert len(list(root.iter("rect"))) == 60


def test_losses_of_very_unlike_size_get_a_log_scale(store, demo):
    results = collect(store)
    assert "log scale" in curve_plot(results, "train_loss")
    assert "log scale" not in curve_plot(results, "valid_balanced_accuracy")


@pytest.mark.parametrize(
    ("low", "high", "log", "expected"),
    [
        (0, 1, False, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (-3.2, 11, False, [-2, 0, 2, 4, 6, 8, 10]),
        (0.02, 3, True, [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2]),
        (1e-6, 1e3, True, [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000]),
    ],
)
def test_ticks_are_round(low, high, log, expected):
    assert Scale(low, high, 0, 100, log).ticks() == pytest.approx(expected)


def test_scale_and_limits():
    assert Scale(0, 10, 100, 200)(2.5) == 125
    assert Scale(0, 10, 100, 200)(99) == 200  # beyond the limits it stays at the edge
    assert Scale(1, 100, 0, 10, log=True)(10) == pytest.approx(5)
    assert limits([0, 1], [-9, 9], reach=0.5, pad=0) == (-0.5, 1.5)
    low, high = limits([0.0, 0.0])
    assert low < 0 < high
    assert limits([], []) == pytest.approx((-0.05, 1.05))
    assert [decimals(t) for t in ([0, 2, 4], [0, 0.5], [0.01, 0.02], [3])] == [0, 1, 2, 0]
