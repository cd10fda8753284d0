"""The published numbers: files, and some numbers looked up in the papers by hand."""

import tomllib
from pathlib import Path

import pytest

from equipoise.core import EquipoiseError
from equipoise.reproduction import read_paper, read_papers
from equipoise.reproduction.published import Point, read_elsewhere

from .conftest import paper_text

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "studies" / "papers" / "published"
CELLS = {(cell.study, cell.method): cell for paper in read_papers(FOLDER) for cell in paper.cells}


def test_every_cell_is_a_method_of_a_study():
    for study in {study for study, _ in CELLS}:
        methods = tomllib.loads((ROOT / "studies" / "full" / f"{study}.toml").read_text())["methods"]
        named = {method for name, method in CELLS if name == study}
        named |= {cell.against for cell in CELLS.values() if cell.study == study and cell.against}
        assert named <= methods.keys()


@pytest.mark.parametrize(
    ("study", "method", "value"),
    [
        ("class_balanced_table2_cifar10_ratio100", "Softmax", 70.36),
        ("class_balanced_table2_cifar100_ratio10", "Class-balanced", 57.99),
        ("mfw_table1_cifar10_long_tailed_ratio100", "MFW w/ DRW", 79.8),
        ("mfw_table1_cifar100_step_ratio200", "τ-norm", 43.2),
        ("mfw_table1_cifar10_step_ratio100", "Remix-DRW", 77.9),
        ("mfw_table5_cifar100_step", "MFW (3rd group)", 46.3),
        ("mfw_table6_cifar100_long_tailed", "MFW, α = 0.2", 44.7),
        ("loss_functions_table1_cifar100", "extra final layer L2", 80.2),
        ("four_things_table1_cifar100", "Ghost batch norm, 16, example weighing", 72.2),
        ("four_things_section3_3_inception_v3_caltech256", "Decay of γ and β to 0", -0.13),
        ("bias_loss_table2_densenet_k12", "Bias loss", 79.9),
        ("bias_loss_table2_mobilenet_v2", "Bias loss (inverse)", 67.6),
    ],
)
def test_numbers_looked_up_in_the_papers(study, method, value):
    assert CELLS[study, method].value == pytest.approx(value)


def test_what_a_cell_says_of_itself():
    objective = CELLS["loss_functions_table1_cifar10", "sigmoid"]
    assert (objective.n, objective.rounding, objective.told) == (25, 0.005, "93.79 ± 0.04")
    assert CELLS["class_balanced_table2_cifar10_ratio20", "Sigmoid"].told == "83.60 (error 16.40)"
    gain = CELLS["four_things_section3_3_cifar100", "Decay of γ and β to 0"]
    assert (gain.measured, gain.against, gain.told) == ("valid_accuracy", "Batch norm", "+0.3")
    whole = CELLS["bias_loss_table2_shufflenet_v2", "Bias loss"]
    assert (whole.printed, whole.rounding) == ("71", 0.5)


def test_a_recipe_may_differ_in_some_studies_only():
    tuned = {ratio: CELLS[f"mfw_table1_cifar10_long_tailed_ratio{ratio}", "MFW"].differs for ratio in (200, 100, 10)}
    assert tuned[100] is None
    assert tuned[200] == tuned[10] == "the paper tunes α and prints its choice for ratio 100 only, which is the α here"


def test_a_dash_is_no_number():
    assert ("mfw_table1_cifar10_step_ratio200", "Focal") not in CELLS


TABLE = paper_text(["one", "two"], "ERM | 70.0 71.0")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("70.0 71.0", "70.0", "ERM has 1 numbers for 2 studies"),
        ('"accuracy"', '"acuracy"', "metric is 'acuracy'"),
        ('"accuracy"', '"gain in accuracy"', "gains against a method"),
        ('71.0\n"""', '71.0\n"""\n[table.differs]\nErm = "x"', "differs names Erm"),
        ('71.0\n"""', '71.0\n"""\n[table.differs.ERM]\n"three*" = "x"', r"names three\*, which is the name of no"),
        ('place = "page 1"\n', "", "'place'"),
    ],
)
def test_mistakes_are_named(tmp_path, old, new, message):
    path = tmp_path / "paper.toml"
    path.write_text(TABLE)
    assert len(read_paper(path).cells) == 2
    path.write_text(TABLE.replace(old, new))
    with pytest.raises(EquipoiseError, match=message):
        read_paper(path)


def test_numbers_of_other_papers(tmp_path):
    assert read_elsewhere(tmp_path) == []
    (tmp_path / "elsewhere.toml").write_text('[[point]]\nmethod = "A"\nsaid = "its page"\ntask_ratio100 = 80\n')
    assert read_elsewhere(tmp_path) == [Point("A", "its page", {"task_ratio100": 80.0})]
    (tmp_path / "elsewhere.toml").write_text('[[point]]\nmethod = "A"\n')
    with pytest.raises(EquipoiseError, match=r"elsewhere\.toml: 'said'"):
        read_elsewhere(tmp_path)
    pictures = {path.stem for path in (FOLDER.parents[2] / "docs" / "results" / "tables").glob("*.svg")}
    assert {name for point in read_elsewhere(FOLDER) for name in point.accuracies} <= pictures
