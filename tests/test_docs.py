"""Method pages are what the docstrings say, and the README's code runs."""

import re
from pathlib import Path

import pytest

from equipoise.core.extras import MissingPackage

from .loading import loaded

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def builder():
    return loaded(ROOT / "docs" / "build_pages.py")


def test_no_page_is_stale(builder):
    assert builder.stale() == [], "run `make pages`"


def test_a_stale_page_is_found_and_a_new_method_needs_none(builder, tmp_path, monkeypatch):
    monkeypatch.setattr(builder, "FOLDER", tmp_path)
    for name in ("focal.md", "ldam.md"):
        (tmp_path / name).write_text(builder.pages()[name])
    assert builder.stale() == ["README.md"]
    (tmp_path / "README.md").write_text(builder.pages(("focal.md", "ldam.md").__contains__)["README.md"])
    assert builder.stale() == []
    (tmp_path / "ldam.md").write_text("something else")
    (tmp_path / "gone.md").write_text("a method that is no more")
    assert builder.stale() == ["gone.md", "ldam.md"]


@pytest.mark.parametrize("path", [ROOT / "README.md", *(ROOT / "docs").glob("*.md")], ids=lambda p: p.name)
def test_python_in_the_documents_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"^```python\n(.*?)^```", path.read_text(), re.M | re.S):
        try:
            exec(compile(block, f"{path.name}", "exec"), {})
        except MissingPackage as error:
            pytest.skip(str(error))
