"""Tables as papers print them."""

import csv
import io
import math
from dataclasses import replace

import numpy as np
import pytest

from equipoise.analysis import METRICS
from equipoise.core import EquipoiseError
from equipoise.report import paper_table, table_by_ratio, table_csv
from equipoise.report.render.tables import USUAL


def with_ratio(results, ratio, **task):
    """The same results as if they were of data with another ratio."""
    methods = [
        replace(m, recipe={**m.recipe, "task": {**m.recipe["task"], "ratio": ratio, **task}}) for m in results.methods
    ]
    return replace(results, methods=tuple(methods))


def rows(grid):
    return {row[0].main: dict(zip(grid.header, row, strict=True)) for row in grid.rows}


def test_mean_and_standard_error_with_n_parameters_and_key(results, demo):
    outputs = [demo.simulated("ldam", seed) for seed in range(6)]
    scores = np.array([(test["logits"].argmax(1) == test["labels"]).mean() for test in outputs])
    error = scores.std(ddof=1) / math.sqrt(6)
    grid = paper_table(results)
    row = rows(grid)["ldam"]
    assert str(row["Balanced accuracy\u00a0%"]) == f"{100 * scores.mean():.1f} ± {100 * error:.1f}"
    assert (row["n"].main, row["Parameters"].main, row["Key"].main) == ("6", "23,552", demo.key_of("ldam", 0)[:8])
    assert rows(grid)["focal"]["n"].main == "4"
    assert len(grid.header) == len(grid.numeric) == len(USUAL) + 4
    assert "standard error" in grid.caption and grid.caption.startswith(results.question)


def test_bold_is_tier_one(eight):
    bold = {name for name, row in rows(paper_table(eight)).items() if row["Balanced accuracy\u00a0%"].bold}
    assert bold == {m.name for m in eight.methods if m.result.tier == 1}
    assert 0 < len(bold) < 4


def test_metrics_nobody_has_are_left_out(results):
    empty = replace(results.methods[0].estimates["few"], n=0, mean=math.nan)
    methods = tuple(replace(m, estimates={**m.estimates, "few": empty}) for m in results.methods)
    assert "Few\u00a0%" not in paper_table(replace(results, methods=methods)).header


def test_methods_by_ratios(results):
    grid = table_by_ratio([with_ratio(results, ratio) for ratio in (100.0, 20.0)])
    assert grid.header == ("Method", "20", "100", "n", "Parameters", "Key")
    assert grid.caption.startswith("Balanced accuracy % on digits, long-tailed, by imbalance ratio.")
    row = rows(grid)["ldam"]
    assert str(row["20"]) == str(row["100"]) == str(rows(paper_table(results))["ldam"]["Balanced accuracy\u00a0%"])
    key = next(m for m in results.methods if m.name == "ldam").runs[0].key[:8]
    assert row["Key"].main == f"{key} {key}"


def test_other_data_gets_its_name_in_the_heading(results):
    grid = table_by_ratio(
        [results, with_ratio(results, 20.0, imbalance="step"), with_ratio(results, 1.0, imbalance=None)]
    )
    assert grid.header[1:4] == ("digits, as it is", "digits, long-tailed 20", "digits, step 20")


def test_a_method_that_some_studies_lack(results):
    other = with_ratio(results, 100.0)
    fewer = replace(other, methods=tuple(m for m in other.methods if m.name != "ldam"))
    assert rows(table_by_ratio([results, fewer]))["ldam"]["100"].main == "–"


def test_numbers_of_seeds_that_differ_are_all_told(results):
    other = with_ratio(results, 100.0)
    fewer = tuple(replace(m, result=replace(m.result, n=3)) for m in other.methods)
    assert rows(table_by_ratio([results, replace(other, methods=fewer)]))["plain"]["n"].main == "6/3"


def test_what_is_not_alike_is_refused(results):
    other = with_ratio(results, 100.0)
    longer = tuple(replace(m, recipe={**m.recipe, "plan": {"epochs": 60}}) for m in other.methods)
    for studies, words in [
        ([results, replace(other, methods=longer)], "differ in plan.epochs"),
        ([results, replace(other, metric="nll")], "unlike metrics"),
        ([results, results], "give one of them"),
        ([], "at least one"),
    ]:
        with pytest.raises(EquipoiseError, match=words):
            table_by_ratio(studies)


def test_csv_has_every_number(results):
    lines = list(csv.DictReader(io.StringIO(table_csv([results, with_ratio(results, 100.0)]))))
    assert len(lines) == 2 * 4 * len(METRICS)
    line = next(x for x in lines if (x["method"], x["metric"], x["ratio"]) == ("ldam", "nll", "100.0"))
    e = next(m for m in results.methods if m.name == "ldam").estimates["nll"]
    assert [float(line[k]) for k in ("mean", "standard_error", "low", "high")] == [e.mean, e.error, e.low, e.high]
    assert (line["n"], line["parameters"], len(line["key"])) == ("6", "23552", 16)
    assert line["best_or_not_separable"] in ("yes", "no")
