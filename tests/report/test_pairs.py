"""Every pair of methods, and the JSON that the page draws from."""

import json
import math
import re
from itertools import product

import numpy as np
import pytest

from equipoise.report import collect
from equipoise.report.pairs import all_pairs, embedded

T_975_WITH_5 = 2.5705818


def scores(demo, method):
    """Classes are of one size in the test set, so accuracy is the balanced one."""
    outputs = [demo.simulated(method, seed) for seed in range(6)]
    return np.array([(test["logits"].argmax(1) == test["labels"]).mean() for test in outputs])


def test_a_pair_by_hand(results, demo):
    pair = next(p for p in all_pairs(results) if {p.first.name, p.second.name} == {"ldam", "balanced_softmax"})
    gain = scores(demo, pair.second.name) - scores(demo, pair.first.name)
    half = T_975_WITH_5 * gain.std(ddof=1) / math.sqrt(6)
    assert (pair.n, pair.difference) == (6, pytest.approx(gain.mean()))
    assert (pair.low, pair.high) == (pytest.approx(gain.mean() - half), pytest.approx(gain.mean() + half))
    as_extreme = [abs(np.dot(signs, gain)) >= abs(gain.sum()) - 1e-12 for signs in product((-1, 1), repeat=6)]
    assert pair.p == pytest.approx(np.mean(as_extreme))


def test_p_values_are_those_of_the_verdict(eight):
    rows = {m.name: m.result for m in eight.methods}
    pairs, gate = all_pairs(eight), min(r.p_holm for r in rows.values() if r.standing != "baseline")
    others = sorted((p for p in pairs if "plain" not in (p.first.name, p.second.name)), key=lambda pair: pair.p)
    running = gate
    for place, pair in enumerate(others):
        running = max(running, min(1.0, pair.p * (len(others) - place)))
        assert pair.p_holm == pytest.approx(running)
    for pair in pairs:
        if pair.first.result.tier == pair.second.result.tier:
            assert pair.p_holm > 0.05
        if pair not in others:
            other = pair.second.name if pair.first.name == "plain" else pair.first.name
            assert pair.p_holm == rows[other].p_holm


def test_methods_that_share_no_seed(store, demo):
    for seed in range(6):
        store.remove(demo.key_of("ldam" if seed < 3 else "focal", seed))
    pair = next(p for p in all_pairs(collect(store)) if {p.first.name, p.second.name} == {"ldam", "focal"})
    assert pair.n == 0
    assert all(math.isnan(x) for x in (pair.difference, pair.low, pair.p, pair.p_holm))


def test_the_embedded_numbers_are_those_of_the_results(results):
    pairs = all_pairs(results)
    data = json.loads(embedded(results, pairs))
    assert set(data["pairs"]) == {f"{p.first.index}-{p.second.index}" for p in pairs}
    focal = next(m for m in results.methods if m.name == "focal")
    there = data["methods"][str(focal.index)]
    assert [s is None for s in there["scores"]] == [False, False, True, False, True, False]
    assert there["mean"][0] == pytest.approx(focal.result.mean, rel=1e-5)
    assert data["classes"][0] == ["zero", 400]


@pytest.mark.parametrize("text", ["</script><script>alert(1)</script>", "<!--<script>", "]]>\u2028&amp;\"'\\"])
def test_no_name_ends_the_script(store, text):
    study = store.read_json("study.json")
    study["methods"][2]["name"] = text
    store.write_json("study.json", study)
    results = collect(store)
    data = embedded(results, all_pairs(results))
    assert not re.search("[<>&\u2028\u2029]", data)
    assert text in [method["name"] for method in json.loads(data)["methods"].values()]
