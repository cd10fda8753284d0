"""The small studies can be read and ask for data that anybody has; those at full size are what the tables give."""

from pathlib import Path

import pytest

from equipoise.core import Spec
from equipoise.study import Study

STUDIES = Path(__file__).parents[2] / "studies"
SMALL = sorted(STUDIES.glob("*.toml"))
PAPERS = {
    "effective_number", "mfw_long_tail", "mfw_step", "nine_objectives", "four_things_norm", "bias_loss",
    "cosine_temperature", "non_iid_batches",
}  # fmt: skip


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_a_study_of_the_gallery_is_sound(path):
    study = Study.from_toml(path)
    assert study.baseline in study.methods and study.question.endswith("?")
    assert len({recipe.key for recipe in study.methods.values()}) == len(study.methods), "no method is there twice"


def test_each_paper_has_a_small_study():
    assert {path.stem for path in SMALL} >= PAPERS


def test_full_studies_are_what_the_tables_give(monkeypatch):
    monkeypatch.syspath_prepend(STUDIES.parent)
    from studies.papers.__main__ import PREFIXES, texts

    found = {path.name: path.read_text() for path in (STUDIES / "full").glob("*.toml")}
    assert {name: text for name, text in found.items() if name.startswith(PREFIXES)} == texts(), "run `make studies`"


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_small_studies_are_small(path):
    study = Study.from_toml(path)
    assert {Spec.parse(r.task.name).name for r in study.methods.values()} <= {"digits", "fashion_mnist"}
    assert all(r.model.startswith("cnn_small") and r.plan.precision == "float32" for r in study.methods.values())
