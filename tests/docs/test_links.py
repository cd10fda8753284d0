"""Every link of the Markdown pages to a file or heading of this repository leads somewhere; Sphinx is not needed."""

import re
import unicodedata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "studies").rglob("*.md")])
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.py"))


def prose(page):
    """The text of a page without its code, in which brackets are no links."""
    text = re.sub(r"^(```+|~~~+).*?^\1", "", page.read_text(), flags=re.M | re.S)
    return re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "code", text)


def anchors(page):
    """Of the headings, as GitHub and MyST make them: lower case, without punctuation, hyphens for spaces."""
    without_code = re.sub(r"^(```+|~~~+).*?^\1", "", page.read_text(), flags=re.M | re.S)
    found = []
    for title in re.findall(r"^#+ (.+?)\s*$", without_code, re.M):
        kept = "".join(c for c in title.lower() if c in " -_" or unicodedata.category(c)[0] in "LN")
        slug = kept.replace(" ", "-")
        found.append(slug if slug not in found else f"{slug}-{found.count(slug)}")
    return found


def broken(page):
    """The links of a page that lead nowhere."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):  # to somewhere else
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            yield target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert list(broken(page)) == []


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_paths_that_are_named_exist(name):
    for path in re.findall(r"`([\w.]+/[\w./]+)`", (ROOT / name).read_text()):
        known = [ROOT / path, ROOT / "equipoise" / path]
        assert "NAME" in path or path.startswith("build/") or any(place.exists() for place in known), path


def test_broken_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# The `top`, again\n[up](#the-top-again) [gone](#gone) [there](page.md#the-top-again) [away](none.md) "
        "[web](https://x.org) `[code](none.md)`\n```\n# no heading\n[code](none.md)\n```\n[last](page.md#no-heading)"
    )
    assert list(broken(page)) == ["#gone", "none.md", "page.md#no-heading"]


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials_name_pages_that_exist(tutorial):
    for name in re.findall(r":doc:`/([^`]+)`", tutorial.read_text()):
        assert (ROOT / "docs" / f"{name}.md").exists()


def test_the_front_page_names_every_tutorial():
    named = set(re.findall(r"auto_tutorials/(\w+)`", (ROOT / "docs" / "index.md").read_text()))
    assert named == {path.stem for path in TUTORIALS}


def test_the_menu_names_every_guide():
    menu = (ROOT / "docs" / "index.md").read_text().split("\n")
    guides = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert guides <= set(menu)


def test_every_public_package_has_a_page_of_its_api():
    pages = {path.stem for path in (ROOT / "docs" / "api").glob("*.md")}
    packages = {
        path.parent.name for path in (ROOT / "equipoise").glob("*/__init__.py") if "__all__" in path.read_text()
    }
    assert pages == packages - {"native", "cli"}
