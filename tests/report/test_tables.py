"""The tables against numbers computed here."""

import csv
import io
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from equipoise.analysis import METRICS
from equipoise.report import class_table, collect, ranked_table, results_csv
from equipoise.report.pairs import all_pairs
from equipoise.report.render.tables import USUAL, metric_table, pair_table


def cells(results, method):
    table = ranked_table(results)
    row = next(row for row in table.rows if row.method.name == method)
    return {column.name: cell for column, cell in zip(table.columns, row.cells, strict=True)}


def test_top5_accuracy_has_a_column_where_classes_are_many(results):
    def columns(found):
        return [column.name for column in ranked_table(found).columns]

    many = replace(results, class_names=tuple(map(str, range(100))))
    assert "top5" not in columns(results) and "top5" in columns(many)
    assert "valid_top5" not in results.curve_names[:3]
    methods = tuple(replace(m, curves=m.curves | {"valid_top5": m.curves["train_loss"]}) for m in many.methods)
    assert "valid_top5" in replace(many, methods=methods).curve_names[:4]


def test_a_row_of_the_ranking(store, demo):
    scores, reference = [], []
    for seed in range(6):
        for method, into in (("ldam", scores), ("plain", reference)):
            test = demo.simulated(method, seed)
            into.append((test["logits"].argmax(1) == test["labels"]).mean())  # classes are of one size: balanced too
    gain = np.subtract(scores, reference)
    half = [100 * 2.5705818 * np.std(x, ddof=1) / math.sqrt(6) for x in (scores, gain)]
    low, high = 100 * gain.mean() - half[1], 100 * gain.mean() + half[1]
    row = cells(collect(store), "ldam")
    assert str(row["balanced_accuracy"]) == f"{100 * np.mean(scores):.1f} ± {half[0]:.1f}"
    assert row["difference"].main == f"{100 * gain.mean():+.1f}"
    assert row["difference"].minor == f"[{low:+.1f}, {high:+.1f}]"
    assert row["n"].main == "6"
    assert str(row["method"]) == "ldam (other network)"
    assert row["parameters"].main == "23,552"
    assert row["key"].main == demo.key_of("ldam", 0)[:8]
    assert demo.key_of("ldam", 5) in row["key"].note


def test_the_chance_to_beat_the_baseline(results):
    r = next(m.result for m in results.methods if m.name == "ldam")
    ends = f"[{100 * r.beats_low:.0f}, {100 * r.beats_high:.0f}]"
    assert str(cells(results, "ldam")["beats"]) == f"{100 * r.beats:.0f} {ends}"
    assert cells(results, "plain")["beats"].main == "–"


def test_every_metric_has_its_n_and_interval(store):
    results = collect(store)
    for method in ("plain", "balanced_softmax", "ldam", "focal"):
        row = cells(results, method)
        for metric in USUAL:
            assert re.fullmatch(r"\d+\.\d+ ± \d+\.\d+", str(row[metric])), (method, metric, str(row[metric]))
            assert row[metric].note.endswith(f", n = {row['n'].main}")
        assert row["n"].main == ("4" if method == "focal" else "6")


def test_all_metrics_of_a_method(results):
    rows = dict(metric_table(results.reference))
    assert len(rows) == len(results.reference.estimates) >= len(METRICS)
    e = results.reference.estimates["nll"]
    assert str(rows["NLL\u00a0nats"]) == f"{e.mean:.3f} ± {e.half:.3f}"


def test_the_baseline_is_not_compared_with_itself(store):
    row = cells(collect(store), "plain")
    assert (row["difference"].main, row["p_holm"].main, row["standing"].main) == ("baseline", "–", "baseline")


def test_a_method_without_runs_is_a_row_of_dashes(store, demo):
    for seed in range(6):
        store.remove(demo.key_of("focal", seed))
    row = cells(collect(store), "focal")
    assert (str(row["balanced_accuracy"]), row["n"].main) == ("–", "0")
    assert (row["tier"].main, row["standing"].main, row["parameters"].main) == ("–", "no data", "–")
    assert math.isnan(row["accuracy"].sort)
    tiers = ranked_table(collect(store)).tiers()
    assert tiers[-1][0] is None
    assert [r.method.name for r in tiers[-1][1]] == ["focal"]


def test_one_seed_has_no_interval(tmp_path, demo):
    results = collect(demo.make_store(tmp_path / "one", seeds=1))
    row = cells(results, "ldam")
    assert str(row["accuracy"]).endswith("± –")
    assert str(row["difference"]).endswith("[no interval]")
    assert row["n"].main == "1"


def test_a_number_of_pairs_that_is_not_n_is_told(store, demo):
    store.remove(demo.key_of("plain", 5))
    row = cells(collect(store), "ldam")
    assert (row["n"].main, row["difference"].minor[-3:]) == ("6", "(5)")


def test_bold_is_the_first_of_several_tiers(eight, results, demo):
    """With eight seeds and all differences of one sign, 2 / 2^8 times 3 comparisons is below 0.05."""
    bold = {name: {c for c, cell in cells(eight, name).items() if cell.bold} for name in demo.METHODS}
    assert "balanced_accuracy" in bold["balanced_softmax"]
    assert "balanced_accuracy" not in bold["plain"]
    assert not {"n", "parameters", "difference"} & set.union(*bold.values())
    for metric in set.union(*bold.values()):
        sign = 1 if METRICS[metric].higher_is_better else -1
        best = max(eight.methods, key=lambda m, s=sign, name=metric: s * m.estimates[name].mean)
        assert metric in bold[best.name]
        assert any(metric not in of_method for of_method in bold.values())
    assert not any(cell.bold for name in demo.METHODS for cell in cells(results, name).values())  # six seeds: no claim


def test_every_pair_of_methods(results):
    pairs = all_pairs(results)
    header, rows = pair_table(results, pairs)
    assert len(rows) == len(pairs) == 6
    assert all(len(row) == len(header) for row in rows)
    by_names = {(row[0].main, row[1].main): row for row in rows}
    ldam = next(m for m in results.methods if m.name == "ldam")
    row = by_names["plain", "ldam"] if ("plain", "ldam") in by_names else by_names["ldam", "plain"]
    sign = 1 if row[0].main == "ldam" else -1
    assert row[2].sort == pytest.approx(sign * ldam.result.difference)


def test_of_very_many_classes_the_largest_and_the_smallest_are_listed(results):
    names, counts = tuple(f"c{c}" for c in range(1000)), tuple(range(2000, 1000, -1))
    methods = tuple(replace(m, per_class=m.per_class * 100) for m in results.methods)
    _, rows = class_table(replace(results, methods=methods, class_names=names, class_counts=counts))
    assert [row[0].main for row in rows] == [f"c{c}" for c in (*range(100), *range(900, 1000))]


def test_where_lower_is_better(store):
    store.write_json("study.json", store.read_json("study.json") | {"metric": "nll"})
    results = collect(store)
    table = ranked_table(results)
    columns = {column.name: column for column in table.columns}
    assert not columns["nll"].high_first
    assert not columns["difference"].high_first
    assert columns["balanced_accuracy"].high_first
    by_rank = sorted(results.methods, key=lambda m: m.rank)
    assert by_rank[0].result.mean == min(m.result.mean for m in results.methods)
    assert re.fullmatch(r"\d\.\d{3} ± \d\.\d{3}", str(cells(results, "plain")["nll"]))


def test_classes_from_the_largest_to_the_smallest(store, demo):
    header, rows = class_table(collect(store))
    assert header[:2] == ["Class", "Images"]
    assert set(header[2:]) == set(demo.METHODS)
    assert [row[0].main for row in rows] == list(demo.CLASS_NAMES)
    assert [row[1].main for row in rows] == [str(n) for n in demo.CLASS_COUNTS]
    right = [
        (demo.simulated("plain", s)["logits"].argmax(1) == demo.simulated("plain", s)["labels"])[:30].mean()
        for s in range(6)
    ]
    assert rows[0][header.index("plain")].main == f"{100 * np.mean(right):.1f}"


def test_csv(store, demo):
    rows = list(csv.DictReader(io.StringIO(results_csv(collect(store)))))
    assert len(rows) == 24
    assert list(rows[0]) == ["method", "seed", "state", "key", "parameters", "seconds", *METRICS]
    for row in rows:
        method, seed = row["method"], int(row["seed"])
        assert row["key"] == demo.key_of(method, seed)
        if row["state"] == "finished":
            test = demo.simulated(method, seed)
            logits = test["logits"].astype(np.float64)
            log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
            assert float(row["accuracy"]) == pytest.approx((logits.argmax(1) == test["labels"]).mean())
            assert float(row["nll"]) == pytest.approx(-log_p[np.arange(300), test["labels"]].mean(), rel=1e-3)
            assert (float(row["seconds"]), int(row["parameters"])) == (12.5 + seed, demo.METHODS[method][3])
        else:
            assert math.isnan(float(row["accuracy"]))
    assert [r["state"] for r in rows if r["method"] == "focal"] == [
        "finished", "finished", "failed", "finished", "missing", "finished",
    ]  # fmt: skip
