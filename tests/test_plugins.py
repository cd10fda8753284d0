"""Methods of other packages: found, used in a study, and no danger to the tool."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "plugin"
STUDY = """
name = "plugin"
question = "Does a plugin's loss train?"
baseline = "plain"
seeds = [0, 1]
task = {name = "digits", imbalance = "long_tailed", ratio = 20}
base = {model = "cnn_small", epochs = 1}

[methods.plain]

[methods.poly]
loss = "poly1(epsilon=2.0)"
"""


def install(site, module, source, name="poly1"):
    """As pip leaves a package with one module behind, without asking a network for anything."""
    (site / f"{module}.py").write_text(source)
    info = site / f"{module}-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(f"[equipoise.methods]\n{name} = {module}\n")


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


@pytest.fixture
def run(site, tmp_path):
    """Runs Python where the packages in `site` are installed."""

    def run(*arguments, rc=0):
        paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "200", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, *map(str, arguments)], capture_output=True, text=True, env=environment, cwd=tmp_path
        )
        assert done.returncode == rc, done.stdout[-3000:] + done.stderr[-3000:]
        return done

    return run


@pytest.fixture
def example(site):
    install(site, "equipoise_poly1", (EXAMPLE / "equipoise_poly1.py").read_text())


@pytest.mark.usefixtures("example")
def test_it_is_listed_and_explained(run):
    listed = run("-m", "equipoise", "methods", "loss")
    assert "poly1" in listed.stdout and "focal" in listed.stdout and not listed.stderr
    assert "Poly1" not in run("-m", "equipoise", "methods", "weighting").stdout
    shown = run("-m", "equipoise", "show", "poly1").stdout
    assert "poly1(epsilon=1.0)" in shown and "PolyLoss" in shown


@pytest.mark.slow
@pytest.mark.usefixtures("example")
def test_a_study_with_it_runs_in_worker_processes(run, tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    run("-m", "equipoise", "run", "study.toml", "--workers", "2", "--device", "cpu", "--out", "out")
    assert len(list((tmp_path / "out").rglob("record.json"))) == 4


@pytest.mark.slow
@pytest.mark.usefixtures("example")
def test_its_own_tests_pass(run, tmp_path):
    shutil.copy(EXAMPLE / "test_poly1.py", tmp_path)
    assert "2 passed" in run("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_poly1.py").stdout


def test_the_example_names_its_entry_point():
    import tomllib

    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())
    assert project["project"]["entry-points"] == {"equipoise.methods": {"poly1": "equipoise_poly1"}}
    assert (EXAMPLE / f"{project['tool']['setuptools']['py-modules'][0]}.py").exists()


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("raise RuntimeError('out of paper')", "RuntimeError: out of paper"),
        (
            "from equipoise.losses import Loss\nfrom equipoise.core import register\n"
            "@register('mine', kind='loss')\nclass Mine(Loss):\n    pass\n"
            "@register('focal', kind='loss')\nclass Focal(Loss):\n    pass",
            "ValueError: two loss entries are named 'focal': equipoise.losses.focal.FocalLoss and bad.Focal; "
            "rename the second",
        ),
    ],
)
def test_one_that_fails_is_told_in_a_sentence_and_left_out(site, run, source, sentence):
    install(site, "equipoise_poly1", (EXAMPLE / "equipoise_poly1.py").read_text())
    install(site, "bad", source, name="a bad one")
    listed = run("-m", "equipoise", "methods", "loss")
    assert listed.stderr == f"the plugin 'a bad one' of the package bad 0.1.0 is left out: {sentence}\n"
    assert "focal" in listed.stdout and "poly1" in listed.stdout and "mine" not in listed.stdout


def test_a_name_of_ours_is_ours_even_if_the_plugin_came_first(site, run):
    source = "from equipoise.core import register\n@register('focal', kind='loss')\nclass Focal:\n    pass"
    install(site, "early", source)
    code = "from equipoise.core import card; card('bias', 'weighting'); print(card('focal', 'loss').origin)"
    done = run("-c", code)
    assert done.stdout == "equipoise.losses.focal.FocalLoss\n"
    assert done.stderr == (
        "two loss entries are named 'focal': early.Focal and equipoise.losses.focal.FocalLoss; "
        "the first, a plugin's, is left out\n"
    )
