"""What holds for every drawing: well-formed, described in words, one look for a method, names that stay text."""

import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import chain

import pytest

from equipoise.report import collect
from equipoise.report.collected import Estimate
from equipoise.report.figures import (
    class_bars,
    class_plot,
    confusion_plot,
    curve_plot,
    interval_plot,
    reliability_diagram,
    reliability_plot,
    score_plot,
    sensitivity_plot,
    size_plot,
)
from equipoise.report.figures.sensitivity import Trial
from equipoise.store import Store


def drawings(results):
    """Those of all methods together, and those of each alone."""
    trials = [Trial(m.name, "loss.gamma", v, Estimate(1, 0.5, 0.4, 0.6)) for m in results.methods for v in (1, 2)]
    together = [f(results, wide) for f in (interval_plot, class_plot, size_plot) for wide in (True, False)]
    together += [curve_plot(results, name) for name in results.curve_names]
    together += [reliability_plot(results), score_plot(results, "ece"), sensitivity_plot(results, "loss.gamma", trials)]
    single = [class_bars, confusion_plot, lambda _, method: reliability_diagram(method)]
    return together, [f(results, method) for method in results.methods for f in single]


def test_all_are_well_formed_and_say_what_they_show(results):
    together, alone = drawings(results)
    for plot in together + alone:
        root = ET.fromstring(str(plot))
        assert root.get("role") == "img"
        assert len(root.get("aria-label")) > 30
        assert "nan" not in str(plot).lower().replace("aria-label", "")


def test_a_method_has_one_look_in_all(results, groups):
    seen = {}
    for plot in chain(*drawings(results)):
        for index, group in groups(plot).items():
            seen.setdefault(index, set()).add(group.get("class"))
    assert seen == {"0": {"series m0"}, "1": {"series m1"}, "2": {"series m2"}, "3": {"series m3"}}


def test_every_method_is_in_the_drawings_of_all(results, groups):
    for plot in drawings(results)[0]:
        assert set(groups(plot)) == {"0", "1", "2", "3"}


def test_hostile_names_stay_text(store, demo):
    hostile = "</title></svg><script>alert(1)</script>&\"'"
    study = store.read_json("study.json")
    study["methods"][2]["name"] = hostile
    store.write_json("study.json", study)
    for record in [record for record in store.records() if record.finished]:
        outputs = {"test": store.test_sealed(record.key)}
        store.remove(record.key)
        store.put(replace(record, class_names=(hostile, *demo.CLASS_NAMES[1:])), outputs)
    for plot in chain(*drawings(collect(store))):
        assert "<script" not in plot
        if plot:
            ET.fromstring(str(plot))


def test_nothing_to_draw(tmp_path, demo):
    empty = Store(tmp_path / "empty").create()
    demo.write_study(empty)
    together, alone = drawings(collect(empty))
    assert [str(plot) for plot in together[:-1] + alone] == [""] * (len(together) - 1 + len(alone))


@pytest.mark.parametrize("seeds", [1, 2])
def test_few_seeds(tmp_path, demo, seeds):
    """No interval with one seed, enormous ones with two."""
    for plot in chain(*drawings(collect(demo.make_store(tmp_path / "few", seeds=seeds)))):
        for element in ET.fromstring(str(plot)).iter():
            for name, value in element.attrib.items():
                if name in ("x", "y", "cx", "cy", "x1", "x2", "y1", "y2"):
                    assert -50 < float(value) < 1200, (element.tag, name, value)
