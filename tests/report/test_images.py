"""What a report says of new images, from outputs that a store keeps for each test image."""

import math

import numpy as np
import pytest

from equipoise.analysis.statistics.new_images import new_images
from equipoise.report import collect, ranked_table


def column(results, name):
    table = ranked_table(results)
    place = [c.name for c in table.columns].index(name)
    return {row.method.name: row.cells[place] for row in table.rows}


def test_the_second_interval_is_of_the_stored_outputs(results, demo):
    right = {
        name: np.array([(t["logits"].argmax(1) == t["labels"]) for t in (demo.simulated(name, s) for s in range(6))])
        for name in ("ldam", "plain")
    }
    labels = demo.simulated("plain", 0)["labels"]
    expected = new_images(right["ldam"].astype(float) - right["plain"], labels, np.ones(10))
    ldam = next(m.result for m in results.methods if m.name == "ldam")
    assert (ldam.new_low, ldam.new_high) == pytest.approx((expected.low, expected.high))
    cell = column(results, "difference")["ldam"]
    assert cell.second == f"new [{100 * expected.low:+.1f}, {100 * expected.high:+.1f}]".replace("-", "−")
    assert f"limited more by {ldam.limited_by}, with any number of seeds ±" in cell.note
    assert column(results, "difference")["plain"].second == ""


def test_claims_say_what_they_are_about(eight):
    better = next(m.result for m in eight.methods if m.result.standing == "better")
    assert better.holds_for in ("new images", "these images")
    words = {"new images": "(new images too)", "these images": "(these images)"}
    assert column(eight, "standing")[better.name].minor == words[better.holds_for]
    assert "new images of this kind" in " ".join(eight.verdict.sentences())


@pytest.mark.parametrize("metric", ["macro_f1", "nll"])
def test_a_score_that_is_no_mean_over_images_has_one_interval(store, demo, metric):
    demo.write_study(store, metric=metric)
    results = collect(store)
    assert not results.knows_new_images
    assert not any(cell.second for cell in column(results, "difference").values())


def test_unlike_test_sets_have_one_interval(store, demo):
    test = demo.simulated("ldam", 3)
    store.remove(demo.key_of("ldam", 3))
    store.put(demo.record_of("ldam", 3), {"test": {name: values[::-1] for name, values in test.items()}})
    results = collect(store)
    assert not results.knows_new_images
    assert all(math.isnan(m.result.p_new) for m in results.methods)
