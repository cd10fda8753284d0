"""A study from TOML: what it becomes, and what it says of mistakes."""

import contextlib
from pathlib import Path

import pytest

from equipoise.core import EquipoiseError
from equipoise.study import Study, jobs_of
from equipoise.train import Mistakes

STUDIES = Path(__file__).parents[2] / "studies"
GOOD = """
question = "?"
baseline = "plain"
seeds = 3
[task]
name = "blobs"
[base]
model = "cnn_small"
epochs = 3
[methods.plain]
[methods.focal]
loss = "focal"
[methods.adjusted]
posthoc = "logit_adjust"
"""


@pytest.fixture
def read(tmp_path):
    def from_text(text):
        path = tmp_path / "asked.toml"
        path.write_text(text)
        return Study.from_toml(path)

    return from_text


def test_a_study_pairs_its_runs(read):
    study = read(GOOD)
    assert study.name == "asked" and study.metric == "balanced_accuracy" and study.seeds == (0, 1, 2)
    runs = list(study.recipes())
    assert [(name, recipe.seed) for name, recipe in runs[:4]] == [
        ("plain", 0),
        ("focal", 0),
        ("adjusted", 0),
        ("plain", 1),
    ]
    assert len({recipe.key for _, recipe in runs}) == 9


def test_post_hoc_methods_share_their_training(read):
    jobs = jobs_of(recipe for _, recipe in read(GOOD).recipes())
    assert len(jobs) == 6  # plain and focal, three seeds each
    shared = [job for job in jobs if len(job.recipes) > 1]
    assert len(shared) == 3 and all(job.training == job.recipes[1].parent for job in shared)


def test_a_chain_is_done_in_order_even_if_only_its_end_is_asked_for(read):
    recipe = read(GOOD.replace('"logit_adjust"', '"logit_adjust"\nstage = "crt"')).methods["adjusted"]
    (job,) = jobs_of([recipe])
    assert [(r.stage is not None, r.posthoc is not None) for r in job.recipes] == [
        (False, False),
        (True, False),
        (True, True),
    ]


def test_the_study_as_the_report_reads_it(read):
    plain = read(GOOD).to_dict()
    assert [m["name"] for m in plain["methods"]] == ["plain", "focal", "adjusted"]
    assert all(len(m["keys"]) == 3 and "seed" not in m["recipe"] for m in plain["methods"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'loss = "focal"',
            'loss = "focl"',
            r"asked.toml: \[methods.focal\]: loss: no loss is named 'focl'. Did you mean",
        ),
        ('loss = "focal"', 'loss = "focal(gama=1)"', "focal has no parameter 'gama'; it takes gamma"),
        ('loss = "focal"', 'loss = "focal(gamma=-1)"', "gamma must be at least 0"),
        ('loss = "focal"', "loss = 3", "expected text such as"),
        ('loss = "focal"', 'los = "focal"', "no option is named 'los'. Did you mean 'loss'"),
        ('name = "blobs"', 'name = "blob"', "no task is named 'blob'. Did you mean 'blobs'"),
        ('name = "blobs"', 'name = "blobs"\nratio = 0.5\nimbalance = "step"', "ratio .*must be at least 1"),
        ('name = "blobs"', 'name = "blobs"\nimbalence = "step"', "'task.imbalence'. Did you mean 'imbalance'"),
        ('name = "blobs"', 'name = "blobs"\nimbalance = "steep"', "imbalance"),
        ('name = "blobs"', 'name = "blobs"\nratio = 20', "imbalance"),
        (
            'baseline = "plain"',
            'baseline = "plan"',
            "the baseline 'plan' is not among the methods. Did you mean 'plain'",
        ),
        ('baseline = "plain"', "", "no baseline is named"),
        ("seeds = 3", "seeds = 0", "seeds must be"),
        ("seeds = 3", "seeds = [1, 1]", "seeds must be"),
        ("seeds = 3", 'metric = "acuracy"', "no metric is named 'acuracy'. Did you mean 'accuracy'"),
        ("seeds = 3", "sedes = 3", "no key is named 'sedes'. Did you mean 'seeds'"),
        ("seeds = 3", "seeds = ", "is not valid TOML.*line 4"),
        ("epochs = 3", 'epochs = "three"', "epochs must be a whole number"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_a_remedy(read, old, new, message):
    with pytest.raises(EquipoiseError, match=message):
        read(GOOD.replace(old, new))


def test_one_method_is_no_comparison(read):
    with pytest.raises(EquipoiseError, match="at least 2 methods, here are 1"):
        read(GOOD.partition("[methods.focal]")[0])


def test_all_mistakes_are_told_and_each_once(read):
    text = (
        GOOD.replace('name = "blobs"', 'name = "blob"').replace('"focal"', '"focl"').replace("epochs = 3", "epoch = 3")
    )
    with pytest.raises(Mistakes) as caught:
        read(text.replace('baseline = "plain"', 'baseline = "plan"'))
    assert len(caught.value.lines) == 4, caught.value.lines


@pytest.mark.parametrize("value", [3, True, "x", "", [], [1], {}, {"a": 1}, float("nan"), "focal(", "mfw(site=3)"])
def test_no_value_of_a_wrong_type_is_met_as_a_traceback(value):
    def asked(**changes):
        plain = {"baseline": "a", "task": {"name": "blobs"}, "base": {}, "methods": {"a": {}, "b": {}}}
        return {**plain, **changes}

    keys = ("name", "question", "baseline", "metric", "seeds", "task", "base", "methods")
    options = (
        "preset",
        "model",
        "norm",
        "loss",
        "mix",
        "stage",
        "posthoc",
        "epochs",
        "lr",
        "schedule",
        "ema",
        "nesterov",
    )
    studies = [asked(**{key: value}) for key in keys]
    studies += [asked(task={"name": "blobs", key: value}) for key in ("name", "imbalance", "ratio", "valid", "n_max")]
    studies += [asked(methods={"a": {}, "b": {key: value}}) for key in options]
    for plain in studies:
        with contextlib.suppress(EquipoiseError):  # anything else fails
            Study.from_dict(plain)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(EquipoiseError, match="is not there"):
        Study.from_toml(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(EquipoiseError, match="cannot be read"):
        Study.from_toml(tmp_path / "binary.toml")


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*.toml")), ids=lambda p: p.stem)
def test_our_own_studies_are_valid(path):
    assert len(Study.from_toml(path).methods) >= 2
