"""Several studies put together: what counts, what is said, and the page, the tables and the command."""

import csv
import json
import math
import shutil
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import equipoise
from equipoise import EquipoiseError
from equipoise.cli import app
from equipoise.report import combine_studies, render_combined, sentences, write_combined
from equipoise.report.premises import ACCEPTED, WITHHELD
from equipoise.store import Store

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def elsewhere(demo):
    return demo.elsewhere


@pytest.fixture(scope="module")
def studies(eight, elsewhere):
    """Four data sets, one of which lacks a method and one of which says the opposite of the others."""
    return [
        eight,
        elsewhere(eight, "svhn", 0.02),
        elsewhere(eight, "cifar10", 0.01, methods=("plain", "ldam", "balanced_softmax")),
        elsewhere(eight, f"folder(path='/x/{HOSTILE.replace('/', '')}', size=8)", -0.3),
    ]


@pytest.fixture(scope="module")
def combination(studies):
    return combine_studies(studies)


def test_data_sets_have_names_of_their_own(studies, combination, eight):
    assert combination.combined.data[:3] == ("digits, long-tailed 20", "svhn", "cifar10")
    deeper = replace(eight, methods=tuple(replace(m, recipe={**m.recipe, "model": "resnet32"}) for m in eight.methods))
    assert combine_studies([eight, deeper]).combined.data == (
        "digits, long-tailed 20, cnn_small",
        "digits, long-tailed 20, resnet32",
    )
    longer = [replace(m, recipe={**m.recipe, "plan": {**m.recipe["plan"], "epochs": 60}}) for m in eight.methods]
    assert combine_studies([eight, replace(eight, methods=tuple(longer))]).combined.data == (
        "digits, long-tailed 20, epochs 30",
        "digits, long-tailed 20, epochs 60",
    )


def test_effects_are_those_of_the_studies(combination, eight):
    ldam = next(m for m in combination.combined.methods if m.name == "ldam")
    one = next(m.result for m in eight.methods if m.name == "ldam")
    effect = ldam.effect_on("digits, long-tailed 20")
    assert (effect.n, effect.mean, effect.low, effect.high) == pytest.approx(
        (one.n_pairs, one.difference, one.diff_low, one.diff_high)
    )
    assert ldam.effect_on("svhn").mean == pytest.approx(one.difference + 0.02)


def test_what_is_missing_shared_or_against_is_said(combination, eight, elsewhere):
    assert any("focal is in 3 of 4 data sets; it is missing in cifar10." in note for note in combination.notices)
    assert any("4 data sets cannot tell any two methods apart by Wilcoxon" in note for note in combination.notices)
    said = sentences(combination.combined)
    assert "no method is shown to be better than plain" in said[0]
    assert any(sentence.startswith("ldam is below plain") or "surely not on" in sentence for sentence in said)
    twice = combine_studies([eight, elsewhere(eight, "digits"), elsewhere(eight, "svhn")])
    assert any("2 of the 3 are of digits" in note for note in twice.notices)


def test_two_data_sets_say_what_they_cannot_tell(studies):
    combination = combine_studies(studies[:2])
    assert "2 data sets cannot tell what to expect of another one: from 3 on" in combination.notices[0]
    assert sentences(combination.combined)[0].startswith("No method is on 3 data sets with plain")
    assert "too few data sets" in render_combined(combination)


def test_studies_of_one_data_set_are_one(eight):
    parts = [
        replace(eight, methods=tuple(m for m in eight.methods if m.name in names))
        for names in (("plain", "ldam"), ("plain", "focal"))
    ]
    combination = combine_studies(parts)
    assert len(combination.data) == 1
    assert {m.name for m in combination.combined.methods} == {"plain", "ldam", "focal"}
    with pytest.raises(EquipoiseError, match="two of the studies have ldam on digits, long-tailed 20; give one"):
        combine_studies([parts[0], parts[0]])


def test_a_recipe_that_differs_is_told(eight, elsewhere):
    other = elsewhere(eight, "svhn")
    changed = [
        replace(m, changes=(("loss", "cross_entropy", "focal(gamma=5.0)"),)) if m.name == "focal" else m
        for m in other.methods
    ]
    combination = combine_studies([eight, replace(other, methods=tuple(changed))])
    assert "focal is not the same everywhere: it differs in loss." in combination.notices


@pytest.mark.parametrize(("said", "counts"), [(WITHHELD, False), (ACCEPTED, True)])
def test_training_that_has_not_converged_counts_only_where_it_is_accepted(studies, eight, said, counts):
    short = replace(studies[1], verdict=replace(eight.verdict, broken=f"Training has not converged. {said}"))
    combination = combine_studies([eight, short])
    assert ("svhn" in combination.combined.data) is counts
    assert [name for name, _ in combination.left_out] == ([] if counts else ["study of svhn"])
    assert counts or combination.notices[0].startswith("1 of 2 studies left out (study of svhn): training has not conv")
    if not counts:
        with pytest.raises(EquipoiseError, match="none of the studies can be combined"):
            combine_studies([short])


def test_what_cannot_be_combined_is_refused(eight, studies):
    with pytest.raises(EquipoiseError, match="no study to combine"):
        combine_studies([])
    with pytest.raises(EquipoiseError, match="unlike metrics"):
        combine_studies([eight, replace(studies[1], metric="accuracy")])
    other = replace(studies[1], baseline="focal")
    with pytest.raises(EquipoiseError, match="unlike baselines, plain, focal: .* --baseline plain"):
        combine_studies([eight, other])
    assert combine_studies([eight, other], "focal").combined.baseline == "focal"
    assert combine_studies([eight, studies[2]], "focal").left_out == (("study of cifar10", "there is no method focal"),)


def test_what_is_written(combination, tmp_path):
    page = write_combined(combination, tmp_path / "out").read_text()
    assert HOSTILE.replace("/", "") not in page and "&lt;script&gt;alert(1)&lt;script&gt;" in page
    found = combination.combined
    plain = json.loads((tmp_path / "out" / "combined.json").read_text())
    assert plain["methods"][0]["mean"] == found.methods[0].mean and plain["sentences"] == sentences(found)
    with open(tmp_path / "out" / "combined.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    ldam = next(row for row in rows if (row["method"], row["data"]) == ("ldam", "all"))
    assert float(ldam["mean"]) == next(m.mean for m in found.methods if m.name == "ldam")
    assert sum(row["data"] != "all" for row in rows) == sum(len(m.effects) for m in found.methods)
    assert math.isnan(float(next(row for row in rows if row["data"] == "svhn")["p"]))


@pytest.fixture(scope="module")
def folder(_made, tmp_path_factory):
    """Three studies beside each other, as 'equipoise run' leaves them."""
    parent = tmp_path_factory.mktemp("runs")
    for ratio in (10.0, 20.0, 50.0):
        store = Store(shutil.copytree(_made.path, parent / f"digits_{ratio:g}"))
        study = store.read_json("study.json")
        study |= {"name": store.path.name, "seeds": [0, 1], "methods": study["methods"][:2]}
        for method in study["methods"]:
            method["recipe"]["task"]["ratio"], method["keys"] = ratio, method["keys"][:2]
        store.write_json("study.json", study)
    return parent


def test_the_command_and_its_mistakes(folder, tmp_path):
    run = CliRunner().invoke(app, ["combine", str(folder), "--out", str(tmp_path / "out")], env={"COLUMNS": "120"})
    assert run.exit_code == 0 and "1 method against plain on 3 data sets" in run.output
    assert (tmp_path / "out" / "combined.html").exists()
    for path, message in ((tmp_path / "gone", "is not there"), (tmp_path, "holds no study")):
        with pytest.raises(EquipoiseError, match=message):
            equipoise.combine(path)


def test_from_python(folder):
    found = equipoise.combine(*sorted(folder.iterdir()))
    assert [row["method"] for row in found.rows] == ["balanced_softmax", "plain"]
    assert [row["data"] for row in found.effects] == [f"digits, long-tailed {ratio}" for ratio in (10, 20, 50)]
    assert "Over 3 data sets" in repr(found) and "<table>" in found._repr_html_()
