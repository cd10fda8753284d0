"""A study from TOML: what it becomes, and what it says of mistakes."""

import contextlib
from pathlib import Path

import pytest

from equipoise.core import EquipoiseError
from equipoise.data import load_task
from equipoise.store import StudyDocument
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


def test_a_margin_of_equality(read):
    study = read("equivalent_within = 0.5\n" + GOOD)
    assert study.equivalent_within == 0.5 == study.to_dict()["equivalent_within"]
    assert StudyDocument.from_dict(study.to_dict()).equivalent_within == 0.5
    assert "equivalent_within" not in read(GOOD).to_dict()
    for wrong in ("0", "-1", "nan", '"0.5"', "true"):
        with pytest.raises(Mistakes, match="equivalent_within must be"):
            read(f"equivalent_within = {wrong}\n" + GOOD)


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
        ('= "plain"', '= "plan"', "the baseline 'plan' is not among the methods. Did you mean 'plain'"),
        ('baseline = "plain"', "", "no baseline is named"),
        ("seeds = 3", "seeds = 0", "seeds must be"),
        ("seeds = 3", "seeds = [1, 1]", "seeds must be"),
        ("seeds = 3", 'metric = "acuracy"', "no metric is named 'acuracy'. Did you mean 'accuracy'"),
        ("seeds = 3", "sedes = 3", "no key is named 'sedes'. Did you mean 'seeds'"),
        ("seeds = 3", "seeds = ", "is not valid TOML.*line 4"),
        ("epochs = 3", 'epochs = "three"', "epochs must be a whole number"),
        ("epochs = 3", "epochs = 1_000_000_000", "epochs must be at most 100,000"),
        ("epochs = 3", "epochs = 3\nbatch_size = 1_000_000_000_000", "batch_size must be at most 1,000,000"),
        ("epochs = 3", "epochs = 3\nnesterov = 'yes'", "nesterov must be true or false, not 'yes'"),
        ("epochs = 3", 'epochs = 3\nnorm = "batch(eps=-1)"', "eps must be above 0"),
        ("epochs = 3", """epochs = 3\nnorm = "batch(momentum='x')\"""", "momentum of batch must be a finite number"),
        ('"cnn_small"', '"cnn_small(width=1000000000)"', "width must be at most 16,384"),
        ('"cnn_small"', '"cnn_small(width=16000)"', "parameters, and to train them takes 304 GB of memory"),
        ('"logit_adjust"', '"logit_adjust(prior=1)"', "prior of logit_adjust must be a list of finite numbers or None"),
        ("epochs = 3", 'epochs = 3\nschedule = "steps(at=0.5)"', "at of steps must be a list of finite numbers"),
        ("seeds = 3", "seeds = 1_000_000_000", "from 1 to 10,000"),
        ("seeds = 3", 'name = "../../x"', "name may have letters, digits"),
        ("seeds = 3", 'name = "a/b"', "name may have .*not /"),
        ("seeds = 3", 'name = ""', "name must be text that is not empty"),
        ("seeds = 3", 'name = "a\\u0000b"', "name must be printable text"),
        ("seeds = 3", f"name = '{300 * 'x'}'", "name must have at most 100 characters"),
        ("seeds = 3", f"name = '{90 * '木'}'", "too long for a folder: 270 bytes"),
        ("[methods.focal]", "[methods.'']", "a method's name must be text that is not empty"),
        ("[methods.focal]", '[methods."\\u001b[31mred"]', "a method's name must be printable text"),
        ("[task]", "[tuned]\ntrials = 1979-05-27\n[task]", r"\[tuned\]: trials must be a whole number"),
        ("[task]", "[tuned]\nwhen = 1979-05-27\n[task]", r"\[tuned\]: no key is named 'when'"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_a_remedy(read, old, new, message):
    with pytest.raises(EquipoiseError, match=message):
        read(GOOD.replace(old, new))


def test_a_space_to_tune_does_not_stand_in_the_way_of_a_folder(read):
    text = GOOD.replace('"blobs"', """"folder(path='photos')\"""") + "[tune.space]\nlr = [0.05, 0.1]\n"
    assert read(text).tuning.space == {"lr": [0.05, 0.1]}


def test_names_of_any_script_are_names(read):
    for name in ("木村 2", "étude.v2", "a_b-c+d (2)", "نمونه"):
        assert read(GOOD.replace("seeds = 3", f'name = "{name}"')).name == name


def test_parameters_with_a_value_for_each_class_wait_for_the_data(read):
    study = read(GOOD.replace('"logit_adjust"', '"logit_adjust(prior=(1, 2, 3))"'))
    (choice,) = {recipe.task for recipe in study.methods.values()}
    study.check(choice, load_task("blobs"))  # three classes
    with pytest.raises(Mistakes, match=r"\[methods.adjusted\]: prior of logit_adjust must have 10 shares.*not 3"):
        study.check(choice, load_task("digits"))


def test_more_steps_than_can_be_planned_are_refused_before_training(read):
    study = read(GOOD.replace("epochs = 3", "epochs = 100_000\nbatch_size = 1"))
    with pytest.raises(Mistakes, match=r"100,000 epochs of 1,350 images in batches of 1 are 135,000,000 steps"):
        study.check(study.methods["plain"].task, load_task("blobs"))


def test_heads_are_tried_on_the_network_they_are_for(read):
    assert "heads=16" in read(GOOD.replace('loss = "focal"', 'head = "causal(heads=16)"')).methods["focal"].head
    with pytest.raises(Mistakes, match="heads must divide the number of features"):
        read(GOOD.replace('loss = "focal"', 'head = "causal(heads=7)"'))


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


@pytest.mark.parametrize(
    "line", ["seeds = NUMBER", "baseline = NUMBER", "[methods.x]\nloss = NUMBER", "a = [{b = NUMBER}]"]
)
@pytest.mark.parametrize("number", [str(2**63), "0x" + "f" * 5000, "-" + "9" * 4301])
def test_a_whole_number_of_more_than_64_bits_is_refused_wherever_it_stands(line, number, tmp_path):
    (tmp_path / "long.toml").write_text(line.replace("NUMBER", number))
    with pytest.raises(EquipoiseError, match="not valid TOML: .*(64 bits|4300 digits)"):
        Study.from_toml(tmp_path / "long.toml")


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*.toml")), ids=lambda p: p.stem)
def test_our_own_studies_are_valid(path):
    assert len(Study.from_toml(str(path)).methods) >= 2
