"""Imports point one way, and folders and registry agree."""

import ast
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import equipoise
from equipoise.core import KINDS, cards

ROOT = Path(equipoise.__file__).parent
BASE = {"core", ""}  # "": the package
METHODS = {"data", "models", "norms", "losses", "mixing", "imbalance"}
# part -> the parts it may import
ALLOWED = {
    "core": set(),
    "native": BASE,
    **{name: BASE for name in METHODS},
    "models": BASE | {"norms"},  # it exchanges those of another library's network
    "data": BASE | {"native"},
    "norms": BASE | {"native"},
    "losses": BASE | {"native"},
    "testing": BASE,
    "train": BASE | METHODS | {"native"},  # stacked runs are kernels
    "store": BASE,
    "analysis": BASE | {"imbalance"},  # it fits a temperature
    "report": BASE | {"store", "analysis"},
    "auditing": BASE | {"data", "train", "report"},
    "study": BASE | METHODS | {"train", "store", "analysis"},
    "improvement": BASE | METHODS | {"train", "analysis", "deploy"},
    "deploy": BASE | METHODS | {"train", "store"},
    "front": BASE | {"data", "store", "analysis", "report", "auditing", "study", "deploy"},
    "reproduction": BASE | {"train", "store", "analysis", "report", "study"},
    "cli": BASE
    | METHODS
    | {"train", "store", "analysis", "report", "auditing", "study", "deploy", "front", "improvement", "reproduction"},
}


def imported_parts(path):
    """The parts of equipoise that a file imports, anywhere in it."""
    inside = path.relative_to(ROOT).parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            package = ("equipoise", *inside[:-1])
            target = list(package[: len(package) - node.level + 1]) + (node.module or "").split(".")
            target = [t for t in target if t]
            if len(target) == 1:  # from .. import checks, __version__
                yield from ("" if alias.name.startswith("__") else alias.name for alias in node.names)
            else:
                yield target[1]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("equipoise"):
            yield (node.module.split(".") + [""])[1]
        elif isinstance(node, ast.Import):
            yield from ((a.name.split(".") + [""])[1] for a in node.names if a.name.split(".")[0] == "equipoise")


@pytest.mark.parametrize("part", sorted(ALLOWED))
def test_imports_point_one_way(part):
    files = [ROOT / f"{part}.py"] if (ROOT / f"{part}.py").exists() else sorted((ROOT / part).rglob("*.py"))
    assert files
    for path in files:
        wrong = set(imported_parts(path)) - ALLOWED[part] - {part}
        assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}"


def test_every_part_is_in_the_list():
    parts = {m.name for m in pkgutil.iter_modules([str(ROOT)])}
    assert parts == set(ALLOWED) | {"__main__"}


def test_the_walk_finds_an_arrow_that_points_back(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "losses").mkdir()
    bad = tmp_path / "losses" / "bad.py"
    bad.write_text("from ..train import Run\nfrom .. import checks\nfrom ._base import Loss\nimport equipoise.study\n")
    assert list(imported_parts(bad)) == ["train", "checks", "losses", "study"]


def test_every_method_file_is_in_the_registry():
    """A file of a method folder that nobody imports would be found here: it would register nothing."""
    registered = {Path(sys.modules[c.factory.__module__].__file__).resolve() for c in cards()}
    for kind, packages in KINDS.items():
        for card in cards(kind):
            assert card.factory.__module__.startswith(packages), f"{card.name} is registered outside {packages}"
    for folder in ("losses", "mixing"):
        files = {p.resolve() for p in (ROOT / folder).glob("*.py") if not p.name.startswith("_")}
        assert files <= registered


def test_the_example_runs():
    example = ROOT.parent / "examples" / "plain_loop.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, check=True)
    assert float(done.stdout.split(":")[1]) > 0.9
