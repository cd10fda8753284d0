"""report.md: what it holds, and that a name cannot break out of it."""

import re

from markupsafe import Markup

from equipoise.report import Section, collect, render_grid, render_markdown
from equipoise.report.render.paper import Grid
from equipoise.report.render.tables import Cell


def test_says_what_it_should(store, demo):
    text = render_markdown(collect(store))
    for part in (
        "# On long-tailed digits, what beats plain cross-entropy?",
        "cannot support any claim",
        "- loss: `cross_entropy` → `ldam(max_margin=0.5, scale=30.0)`",
        "other network",
        "- task.ratio: `20.0`",
        "FloatingPointError: the loss is &lt;nan&gt; at step 41",
        f"- focal, seed 4 (`{demo.key_of('focal', 4)}`) is not there yet",
        "- Data fingerprint: data0000",
    ):
        assert part in text


def test_tables_keep_their_shape_with_hostile_names(store):
    study = store.read_json("study.json")
    study["methods"][1]["name"] = "a|b <script>\n| `x` [l](http://x)"
    study["question"] = "# <img src=x>\n\n# two"
    store.write_json("study.json", study)
    text = render_markdown(collect(store))
    assert "<" not in text.replace("&lt;", "")
    assert re.findall("^# ", text, re.M) == ["# "]
    tables = re.findall(r"(?:^\|.*\|\n)+", text, re.M)
    assert len(tables) == 3
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1


def test_the_best_are_bold_and_asterisks_of_names_are_not():
    grid = Grid(
        "x", "A *caption*.", ("Method", "a|b"), (False, True), ((Cell("**x**"), Cell("1.0", "± 0.1", bold=True)),)
    )
    assert render_grid(grid).splitlines() == [
        r"| Method | a\|b |",
        "| --- | ---: |",
        r"| \*\*x\*\* | **1.0** ± 0.1 |",
        "",
        r"A \*caption\*.",
    ]


def test_names_the_figures_that_only_the_page_has(results):
    section = Section("extra", "Extra <figures>", "They show something.", (Markup("<svg></svg>"),), further=True)
    assert "report.html also shows: Extra &lt;figures&gt;. They show something." in render_markdown(results, [section])
