"""How Sphinx builds the site out of docs/; `make docs` calls it."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

import equipoise

project = "Equipoise"
copyright = "the authors of Equipoise"
version = release = equipoise.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["tutorials"]  # sphinx-gallery makes pages of them in auto_tutorials
html_theme = "furo"
html_title = "Equipoise"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3  # links such as evidence.md#the-claims, as GitHub makes them

default_role = "code"  # docstrings write `names` as Markdown does
autodoc_typehints = "signature"
autodoc_member_order = "bysource"

# The tutorials are Python files. Each is run while the site is built, and what it prints is on its page.
sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "auto_tutorials",
    "filename_pattern": "/",
    "image_scrapers": (),
    "capture_repr": (),  # only what is printed is shown
    "reset_modules": (),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 1,
}


def with_all_methods(app: Sphinx, page: str, source: list[str]) -> None:
    """The index of methods names every page beside it, so that the site's menu has them."""
    if page == "methods/README":
        names = sorted(path.stem for path in (Path(app.srcdir) / "methods").glob("*.md") if path.stem != "README")
        source[0] += "\n```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"


def readable(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """The * of a shape such as (N, C, *) begins no emphasis."""
    lines[:] = [line.replace(", *", ", \\*") for line in lines]


def setup(app: Sphinx) -> None:
    app.connect("source-read", with_all_methods)
    app.connect("autodoc-process-docstring", readable)
