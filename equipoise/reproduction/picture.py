"""The picture of a task: every method recorded on it, with its interval, beside the numbers that papers print.

Numbers of papers that Equipoise is not built on have rows of their own: what is best of five papers need not be best.

A stand-alone SVG, for a README: its colours are its own, and it has a light and a dark form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from markupsafe import Markup

from ..analysis import mean_interval
from ..report.render.svg import Scale, drawing, limits, line, path, tag
from ..report.render.words import cut, number
from .judgement import FEWEST
from .published import Paper, Point
from .records import StudyRecords

WIDTH, LEFT, RIGHT, ROW, TOP = 960.0, 390.0, 700.0, 24.0, 64.0
FEWEST_OF_OURS = 5  # runs that a row without a published number needs; beside one `FEWEST` will do
FEWEST_ROWS = 3  # two numbers need no picture
KINDS = {  # of rows with runs here: what the legend says, and how wide that is
    "paper": ("a paper's recipe here, 95 % interval", 256.0),
    "own": ("a recipe of ours, 95 % interval", 226.0),
}
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1d2027 } .title { font-size: 16px; font-weight: 600 }
.muted { fill: #5d636e; font-size: 12px } .grid { stroke: #e3e5ea } .page { fill: #fff }
.bar { stroke: #0a4f9e; stroke-width: 2; fill: none } .dot { fill: #0a4f9e }
.own .dot { fill: #d9513a } .own .bar { stroke: #d9513a } .printed { fill: none; stroke: #5d636e; stroke-width: 1.6 }
@media (prefers-color-scheme: dark) {
text { fill: #e6e8ec } .muted { fill: #9ba2ae } .grid { stroke: #30343c } .page { fill: #14161a }
.bar { stroke: #3aa9f5 } .dot { fill: #3aa9f5 } .own .dot { fill: #ff6f59 } .own .bar { stroke: #ff6f59 }
.printed { stroke: #9ba2ae } }
"""


@dataclass(frozen=True)
class Ours:
    """The runs of a method here: how many, their mean accuracy in percent, and its interval."""

    n: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Row:
    """A method, where it comes from, what it came to here and what is published of it: one of the two at least."""

    method: str
    origin: str
    kind: str  # "paper", "own" or "elsewhere": how it is coloured
    ours: Ours | None
    printed: float | None

    @property
    def place(self) -> float:
        """By what rows are sorted."""
        place = self.printed if self.ours is None else self.ours.mean
        assert place is not None, "a row has a number"
        return place


def pictures(
    papers: Sequence[Paper], records: Mapping[str, StudyRecords], elsewhere: Sequence[Point] = ()
) -> dict[str, str]:
    """File name -> SVG, for each imbalanced task of which a published number has been run again, if there is enough to
    see."""
    by_task: dict[tuple[str, str, float], list[StudyRecords]] = {}
    for study in records.values():
        task = study.methods[study.baseline]["task"]
        if task.get("imbalance") and study.metric in ("accuracy", "balanced_accuracy"):
            by_task.setdefault((task["name"], task["imbalance"], task["ratio"]), []).append(study)
    drawn = {}
    for (name, imbalance, ratio), studies in by_task.items():
        rows, file = rows_of(studies, papers), f"{name}_{imbalance}_ratio{ratio:g}"
        if all(row.printed is None for row in rows):
            continue
        rows += [
            Row(point.method, point.said, "elsewhere", None, point.accuracies[file])
            for point in elsewhere
            if file in point.accuracies
        ]
        if len(rows) >= FEWEST_ROWS:
            title = f"{name}, {imbalance.replace('_', '-')}, ratio {ratio:g}"
            drawn[f"{file}.svg"] = picture(title, sorted(rows, key=lambda row: -row.place))
    return drawn


def rows_of(studies: Iterable[StudyRecords], papers: Iterable[Paper]) -> list[Row]:
    """The methods of these studies that have runs enough for an interval worth looking at."""
    cells = {
        (cell.study, cell.method): (f"{paper.name}, {cell.table}", cell.value)
        for paper in papers
        for cell in paper.cells
        if cell.metric in ("accuracy", "error")
    }
    rows = []
    for study in studies:
        for method in study.methods:
            scores, plan = study.shown_scores(method), study.methods[method]["plan"]
            source, printed = cells.get((study.name, method), (None, None))
            if len(scores) >= (FEWEST if source else FEWEST_OF_OURS):
                ours = Ours(len(scores), fmean(scores), *mean_interval(scores))
                # a study of ours trains as it likes, so that is said
                own = f"{plan['epochs']} epochs, decay {plan['weight_decay']:g}"
                rows.append(Row(method, source or own, "paper" if source else "own", ours, printed))
    return rows


def picture(title: str, rows: Sequence[Row]) -> str:
    """Rows from top to bottom as given."""
    bottom = TOP + ROW * len(rows)
    values = [v for row in rows if row.ours for v in (row.ours.mean, row.ours.low, row.ours.high)]
    x = Scale(*limits([*values, *(row.printed for row in rows if row.printed is not None)]), LEFT, RIGHT)
    parts = [
        tag("style", Markup(STYLE)),
        tag("rect", class_="page", width="100%", height="100%", rx=8),
        tag("text", title, class_="title", x=16, y=26),
        tag("text", "Test accuracy after the last epoch, in %", class_="muted", x=LEFT, y=26),
        *_legend(rows),
    ]
    for tick in x.ticks(6):
        parts.append(line(x(tick), TOP - 6, x(tick), bottom, "grid"))
        parts.append(tag("text", f"{tick:g}", class_="muted", x=x(tick), y=bottom + 16, text_anchor="middle"))
    parts += [_row(row, x, TOP + ROW * (i + 0.5)) for i, row in enumerate(rows)]
    said = "; ".join(f"{row.method}: {_words(row)}" for row in rows)
    return str(drawing(WIDTH, bottom + 28, f"{title}. {said}", parts, xmlns="http://www.w3.org/2000/svg")) + "\n"


def _legend(rows: Sequence[Row]) -> list[Markup]:
    """What the marks are, of those that the rows have."""
    x, parts = LEFT, []
    for kind, (said, width) in KINDS.items():
        if any(row.kind == kind for row in rows):
            parts += _key(kind, x, said)
            x += width
    return [*parts, _diamond(x, 41.0), tag("text", "as published", class_="muted", x=x + 12, y=45)]


def _key(kind: str, x: float, said: str) -> list[Markup]:
    dot = tag("circle", class_="dot", cx=x + 4, cy=41.0, r=4.5)
    return [tag("g", dot, class_=kind), tag("text", said, class_="muted", x=x + 14, y=45)]


def _diamond(x: float, y: float) -> Markup:
    return tag("path", class_="printed", d=path([(x, y - 5.5), (x + 5.5, y), (x, y + 5.5), (x - 5.5, y)]) + "Z")


def _row(row: Row, x: Scale, y: float) -> Markup:
    parts = [
        tag("text", cut(row.method, 26), x=16, y=y + 4.5),
        tag("text", cut(row.origin, 40), class_="muted", x=LEFT - 14, y=y + 4.5, text_anchor="end"),
    ]
    if row.ours is not None:
        parts.append(tag("path", class_="bar", d=path([(x(row.ours.low), y), (x(row.ours.high), y)])))
        parts.append(tag("circle", class_="dot", cx=x(row.ours.mean), cy=y, r=4.5))
    if row.printed is not None:
        parts.append(_diamond(x(row.printed), y))
    parts.append(tag("text", _words(row), class_="muted", x=RIGHT + 16, y=y + 4.5))
    return tag("g", *parts, class_=row.kind)


def _words(row: Row) -> str:
    ours = row.ours
    here = [f"{number(ours.mean)} [{number(ours.low)}, {number(ours.high)}], n = {ours.n}"] if ours else []
    return "; ".join([*here, *([f"published {number(row.printed)}"] if row.printed is not None else [])])
