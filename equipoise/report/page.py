"""report.html: one page that needs nothing else. Page, style and script are the files beside this one."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Sequence
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from .collect import Method, Results, flat
from .figures import class_plot, curve_plot, interval_plot
from .provenance import provenance
from .svg import colour, marker
from .tables import class_table, ranked_table
from .words import duration, last_line, title_of

MANY_METHODS = 8  # more lines than this in one figure cannot be told apart


def render_page(results: Results) -> str:
    """The page. All text is escaped, and its own policy lets only its own script and style run."""
    style, script = _file("page.css"), _file("page.js")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"duration": duration, "last_line": last_line, "flat": flat, "title_of": title_of}
    return environment.from_string(_file("page.html")).render(
        results=results,
        style=Markup(style),
        script=Markup(script),
        policy=f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; form-action 'none'",
        table=ranked_table(results),
        classes=class_table(results),
        facts=_facts(results),
        intervals=[interval_plot(results), interval_plot(results, wide=False)],
        class_plots=[class_plot(results), class_plot(results, wide=False)],
        curves=[curve_plot(results, name) for name in results.curve_names],
        shown=_shown(results.methods),
        provenance=provenance(results),
        colour=colour,
        marker=marker,
        sort_key=_sort_key,
    )


def _shown(methods: Sequence[Method]) -> list[Method]:
    """Whose lines the figures show at first; a legend's button adds each of the others."""
    if len(methods) <= MANY_METHODS:
        return list(methods)
    return [method for method in methods if method.is_baseline or method.rank < MANY_METHODS - 1]


def _facts(results: Results) -> list[tuple[str, str]]:
    """What was compared on what: of the baseline's recipe, where it has these dials."""
    dials = {dial: text for dial, text in flat(results.reference.recipe).items() if text != "none"}
    ratio = f"ratio {dials['task.ratio'].removesuffix('.0')}" if "task.ratio" in dials else ""
    data = [dials.get("task.name", ""), dials.get("task.imbalance", "").replace("_", "-"), ratio]
    facts = [
        ("Data", ", ".join(filter(None, data))),
        ("Network", dials.get("model", "")),
        ("Training", f"{dials['plan.epochs']} epochs" if "plan.epochs" in dials else ""),
        ("Compared", f"{len(results.methods)} methods × {len(results.seeds)} seeds"),
        ("Finished", f"{len(results.finished)} of {len(results.runs)} runs"),
    ]
    return [(name, text) for name, text in facts if text]


def _sort_key(sort: float | str) -> str:
    """Empty sorts last."""
    return "" if isinstance(sort, float) and math.isnan(sort) else str(sort)


def _file(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
