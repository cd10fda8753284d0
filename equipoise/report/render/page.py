"""report.html: what a study found, on one page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from markupsafe import Markup

from ...core.times import duration
from ..collect import flat
from ..collected import Collected, Method
from ..data import data_notes, sizes
from ..figures import (
    MOST_ROWS,
    class_bars,
    confusion_plot,
    curve_plot,
    interval_plot,
    reliability_diagram,
    worst_confusions,
)
from ..formulas import FORMULAS
from ..pairs import Pair, all_pairs, embedded
from ..provenance import devices, provenance
from ..seal import seal_notes
from ..sections.section import Section, Sorted
from ..titles import task_title
from .shell import rendered
from .svg import both
from .tables import metric_table, pair_table, ranked_table

MANY_METHODS = 8  # more lines than this in one figure cannot be told apart
MOST_PAIRS = 200  # rows of the table of all pairs


def render_page(results: Collected, sections: Sequence[Section] = ()) -> str:
    """The page, with these `sections` between the methods and the failures; `sections_of` gives those of a store.

    All text is escaped, and its own policy lets only its own script and style run.
    """
    pairs = all_pairs(results)
    content = {
        "title": f"{results.question} · {results.name}",
        "name": results.name,
        "results": results,
        "intervals": [interval_plot(results, wide, MOST_ROWS) for wide in (True, False)],
        "every_interval": both(partial(interval_plot, results)) if len(results.methods) > MOST_ROWS else "",
        "sections": sections,
        "table": ranked_table(results),
        "pairs": pairs,
        "pair_table": _pair_table(results, pairs),
        "compared": _compared(results.methods),
        "facts": _facts(results),
        "notices": _notices(results),
        "shown": _shown(results.methods),
        "provenance": provenance(results),
        "formulas": FORMULAS,
        "data": embedded(results, pairs),
        "contents": _contents(pairs, sections),
        "figures_of": lambda method: _method_figures(results, method),
        "worst_of": lambda method: worst_confusions(results, method),
        "metrics_of": metric_table,
        "words_of": _words_of,
    }
    return rendered("page.html", ("page.js", "compare.js"), content)


def _pair_table(results: Collected, pairs: Sequence[Pair]) -> Sorted:
    header, rows = pair_table(results, pairs if len(pairs) <= MOST_PAIRS else [])
    return Sorted(header, rows, "All pairs of methods", texts=2)


def _method_figures(results: Collected, method: Method) -> list[Markup]:
    """Of one method: two curves above the baseline's, its classes, reliability and confusions."""
    both = [method] if method.is_baseline else [results.reference, method]
    names = [name for name in ("train_loss", f"valid_{results.metric}") if method.curves.get(name)]
    figures = [curve_plot(results, name, both) for name in names]
    figures += [class_bars(results, method), reliability_diagram(method), confusion_plot(results, method)]
    return [figure for figure in figures if figure]


def _contents(pairs: Sequence[Pair], sections: Sequence[Section]) -> list[tuple[str, str]]:
    """(anchor, title) of what the page has, in its order."""
    before = [("ranking", "Ranking"), ("methods", "Methods"), *([("compare", "Compare")] if pairs else [])]
    shown = [(section.name, section.menu or section.title) for section in sections]
    return [*before, *shown, ("failures", "Failures"), ("provenance", "Provenance")]


def _compared(methods: Sequence[Method]) -> tuple[Method, Method]:
    """The two that are compared at first: the baseline, and the best of the others."""
    best = min((m for m in methods if not m.is_baseline), key=lambda m: m.rank, default=methods[0])
    return next(m for m in methods if m.is_baseline), best


def _shown(methods: Sequence[Method]) -> list[Method]:
    """Whose lines the figures show at first; a legend's button adds each of the others."""
    if len(methods) <= MANY_METHODS:
        return list(methods)
    return [method for method in methods if method.is_baseline or method.rank < MANY_METHODS - 1]


def _facts(results: Collected) -> list[tuple[str, str]]:
    """What was compared on what, by the baseline's recipe where it has these dials, and what it cost."""
    dials = {dial: text for dial, text in flat(results.reference.recipe).items() if text != "none"}
    ratio = f"ratio {dials['task.ratio'].removesuffix('.0')}" if "task.imbalance" in dials else sizes(results)
    data = [task_title(dials.get("task.name", "")), dials.get("task.imbalance", "").replace("_", "-"), ratio]
    facts = [
        ("Data", ", ".join(filter(None, data))),
        ("Network", dials.get("model", "")),
        ("Training", f"{dials['plan.epochs']} epochs" if "plan.epochs" in dials else ""),
        ("Compared", f"{len(results.methods)} methods × {len(results.seeds)} seeds"),
        ("Finished", f"{len(results.finished)} of {len(results.planned)} runs"),
        ("Computing time", duration(sum(record.seconds for record in results.records))),
        ("Hardware", devices(results)),
    ]
    return [(name, text) for name, text in facts if text]


def _notices(results: Collected) -> list[tuple[str, str]]:
    """(sentence, anchor of more) of what a reader must know before believing the answer."""
    missing, failed, planned = len(results.missing), len(results.failed), len(results.planned)
    parts = [f"{missing} of {planned} runs {'is' if missing == 1 else 'are'} missing"] if missing else []
    parts += [f"{failed} failed"] if failed else []
    whole = [(f"This study is not whole: {' and '.join(parts)}.", "failures")] if parts else []
    return whole + [(note, "") for note in (*data_notes(results), *seal_notes(results.opened, results.rounds))]


def _words_of(method: Method) -> str:
    """What the filter looks through."""
    return " ".join(
        [method.name, method.result.standing, *method.marks, *(f"{d} {new}" for d, _, new in method.changes)]
    )
