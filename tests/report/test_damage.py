"""A report and a status of a damaged study name what is wrong and go on, or say it in a sentence; never a traceback."""

import io
import json
import random
import shutil

import pytest
from rich.console import Console

from equipoise.core import EquipoiseError
from equipoise.report import collect, print_status, sections_of, status_of, write_report
from equipoise.report.provenance import provenance
from equipoise.store import Store

ODD = ["", "{", "[]", "{}", "null", '{"methods": 3}', '{"openings": {}}', '{"looks": 1}', '{"checksum": 1}']


@pytest.fixture(scope="module")
def small(tmp_path_factory, demo_module):
    """Two methods, two seeds, and every document that a report reads."""
    store = Store(tmp_path_factory.mktemp("small") / "s").create()
    demo_module.write_study(store, methods=("plain", "ldam"), seeds=2)
    for method in ("plain", "ldam"):
        for seed in range(2):
            outputs = demo_module.simulated(method, seed, per_class=2)
            store.put(demo_module.record_of(method, seed), {"test": outputs, "valid": outputs}, b"weights")
    collect(store)
    store.write_json("analysis.json", {"schema": 1, "predictions": {"methods": ["plain", "ldam"]}, "transfer": []})
    store.write_json("sensitivity.json", {"methods": []})
    return store


@pytest.fixture(scope="module")
def demo_module():
    import sys

    return next(m for name, m in sys.modules.items() if name.endswith("conftest") and hasattr(m, "write_study"))


@pytest.fixture
def broken(small, tmp_path):
    return Store(shutil.copytree(small.path, tmp_path / "s"))


def look(path):
    """Everything that only looks. What is wrong with the study as a whole is one sentence."""
    try:
        store = Store(path)
        status = io.StringIO()
        print_status(status_of(store), Console(file=status, width=1000))
        results = collect(store)
        sections_of(store, results)
        return results, status.getvalue()
    except EquipoiseError as error:
        assert 20 < len(str(error)) < 700
        return None, str(error)


def test_a_damaged_run_is_named_and_the_rest_is_reported(broken, demo_module):
    key = demo_module.key_of("ldam", 1)
    path = broken.path / "runs" / key / "test.npz"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    results, status = look(broken.path)
    assert [run.key for run in results.failed] == [key] and len(results.finished) == 3
    assert str(path) in results.failed[0].problem and str(path) in status
    page = write_report(broken, results).read_text()
    assert "is damaged" in page and "is damaged" in (broken.path / "report.md").read_text()


def test_runs_of_before_there_were_checksums_are_told_once(broken, demo_module):
    path = broken.path / "runs" / demo_module.key_of("ldam", 1) / "record.json"
    assert "Runs without checksums" not in dict(provenance(look(broken.path)[0]))
    plain = json.loads(path.read_bytes())
    path.write_text(json.dumps({name: value for name, value in plain.items() if name not in ("checksum", "files")}))
    results, said = look(broken.path)
    assert len(results.finished) == 4 and "checksum" not in said
    assert dict(provenance(results))["Runs without checksums"] == "1, written by an earlier version"


@pytest.mark.parametrize("text", ODD)
@pytest.mark.parametrize(
    "name", ["store.json", "study.json", "opened.json", "sequential.json", "analysis.json", "sensitivity.json"]
)
def test_odd_documents(broken, name, text):
    (broken.path / name).write_text(text)
    results, said = look(broken.path)
    assert results or name in said or "not a store" in said
    if name in ("opened.json", "analysis.json", "sensitivity.json"):
        assert results


def test_stores_damaged_at_random(small, tmp_path):
    """Cut, flipped, emptied, removed, or replaced by a folder: 150 stores."""
    rng, files = random.Random(1), sorted(p.relative_to(small.path) for p in small.path.rglob("*") if p.is_file())
    files = [path for path in files if "locks" not in path.parts]
    whole, outcomes = look(small.path)[0].verdict, {"told": 0, "reported": 0}
    for i in range(150):
        path = shutil.copytree(small.path, tmp_path / str(i)) / rng.choice(files)
        data = bytearray(path.read_bytes())
        kind = rng.choice(["cut", "flip", "empty", "gone", "folder"])
        path.unlink()
        if kind == "folder":
            path.mkdir()
        elif kind != "gone":
            place = rng.randrange(8 * len(data))
            if kind == "flip":
                data[place // 8] ^= 1 << place % 8
            path.write_bytes(data if kind == "flip" else data[: place // 8] if kind == "cut" else b"")
        results, _ = look(tmp_path / str(i))
        outcomes["reported" if results else "told"] += 1
        numbers = [] if results is None else [m.mean for m in results.verdict.methods if m.n == 2]
        assert {*numbers} <= {m.mean for m in whole.methods}, f"{kind} of {path}: other numbers"
        shutil.rmtree(tmp_path / str(i))
    assert min(outcomes.values()) > 10, outcomes


def test_every_kind_of_document_has_a_checksum(small):
    for path in small.path.rglob("*.json"):
        assert next(iter(json.loads(path.read_bytes()))) == "checksum", path
