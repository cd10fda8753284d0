"""Sixty of the files that `benchmarks/fuzz_images.py` makes by the thousand."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("PIL")
FILE = Path(__file__).parent.parent / "benchmarks" / "fuzz_images.py"


@pytest.fixture(scope="module")
def fuzz():
    path = list(sys.path)
    spec = importlib.util.spec_from_file_location("fuzz_images", FILE)
    module = sys.modules["fuzz_images"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = path


@pytest.fixture(scope="module")
def watch(fuzz):
    return fuzz.Opened()


def test_nothing_breaks_and_names_stay_text(fuzz, watch, tmp_path):
    found = fuzz.fuzz(tmp_path, 60, 1, watch)
    assert not found.wrong, "\n".join(found.wrong)
    assert sum(found.made.values()) == 60 and found.made["link_out"] == found.made["bomb"] == 6
    assert list(found.seconds) == ["audit", "what the audit says", "compare's reading", "predict"]


def test_what_must_not_happen_is_noticed(fuzz, watch, tmp_path):
    found = fuzz.Found(fuzz.Counter())
    with found.stage("a stage"):
        raise KeyError("x")
    fuzz.check_text(found, "somewhere", "a\x1b[31m")
    assert found.wrong == ["a stage: KeyError: 'x'", "somewhere has [\"'\\\\x1b'\"]"]
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x").touch()
    (tmp_path / "link").symlink_to(tmp_path / "outside" / "x")
    watch.forbidden = str((tmp_path / "outside").resolve())
    (tmp_path / "link").read_bytes()
    assert watch.paths.pop() == str((tmp_path / "outside" / "x").resolve())
    watch.forbidden = None
