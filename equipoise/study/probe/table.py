"""The key numbers of an analysis as a table: on a terminal, and in analysis.md."""

from __future__ import annotations

from pathlib import PurePath

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...analysis.statistics.priority import ALL_METRICS
from ...core.escaping import markdown
from ...store import Analysis
from ...store.analysis import Estimated, FurtherImages, Likeness, Predictions, Transfer

UNKNOWN = "–"
ALIKE = "most alike, %"


def key_table(analysis: Analysis, whole: bool = True) -> tuple[list[str], list[list[str]]]:
    """Header and rows, a method each in the study's order: all that was measured, or what a terminal has room for."""
    columns = {title: values for title, values in _columns(analysis, whole).items() if set(values.values()) - {UNKNOWN}}
    rows = [[name, *(values.get(name, UNKNOWN) for values in columns.values())] for name in _methods(analysis)]
    return ["method", *columns], rows


def _methods(analysis: Analysis) -> tuple[str, ...]:
    if analysis.predictions:
        return analysis.predictions.methods
    return tuple(method.name for method in analysis.representations.methods) if analysis.representations else ()


def _columns(analysis: Analysis, whole: bool) -> dict[str, dict[str, str]]:
    """Title -> method -> text."""
    columns = {}
    if layers := analysis.representations:
        columns["R²"] = {m.name: plus_minus(m.separation["cosine"][-1], 3) for m in layers.methods}
        if whole:
            columns["non-zero %"] = {m.name: plus_minus(m.nonzero[-1], 0, 100) for m in layers.methods}
            columns[f"CKA to {analysis.baseline}"] = _to_baseline(layers.cka, analysis.baseline)
    if analysis.predictions:
        columns[ALIKE] = _nearest(analysis.predictions)
    for task in analysis.transfer:
        title = "transfer %" if len(analysis.transfer) == 1 else f"to {_name(task)} %"
        columns[title] = {m.name: plus_minus(m.accuracy, 1, 100) for m in task.methods}
    for images in analysis.further:
        percent = ALL_METRICS[images.metric].unit == "percent"
        digits, factor, unit = (1, 100, " %") if percent else (3, 1, "")
        columns[f"{_folder(images)}{unit}"] = {m.name: plus_minus(m.score, digits, factor) for m in images.methods}
    if analysis.corruptions:
        columns["mCE"] = {m.name: plus_minus(m.mce, 1) for m in analysis.corruptions.methods}
    if analysis.imagenet_c:
        columns["mCE on ImageNet-C"] = {m.name: plus_minus(m.mce, 1) for m in analysis.imagenet_c.methods}
    return columns


def plus_minus(estimate: Estimated, digits: int, factor: float = 1) -> str:
    """Mean ± half of its interval; without the second part where one run cannot tell.

    >>> plus_minus(Estimated(2, 0.5, 0.4, 0.6), 1, factor=100)
    '50.0 ± 10.0'
    >>> plus_minus(Estimated(1, 0.5, None, None), 2)
    '0.50'
    """
    if estimate.mean is None:
        return UNKNOWN
    mean = f"{factor * estimate.mean:.{digits}f}"
    if estimate.low is None or estimate.high is None:
        return mean
    return f"{mean} ± {factor * (estimate.high - estimate.low) / 2:.{digits}f}"


def _to_baseline(cka: Likeness | None, baseline: str) -> dict[str, str]:
    if cka is None or baseline not in cka.methods:
        return {}
    values = cka.between[cka.methods.index(baseline)]
    return {name: f"{value:.3f}" for name, value in zip(cka.methods, values, strict=True) if value is not None}


def _nearest(predictions: Predictions) -> dict[str, str]:
    """For each method, the other one whose runs most often say the same."""
    names, nearest = predictions.methods, {}
    for name, row in zip(names, predictions.between["same_top1"], strict=True):
        others = [(v, other) for v, other in zip(row, names, strict=True) if other != name and v is not None]
        if others:
            share, other = max(others)
            nearest[name] = f"{other} {100 * share:.1f}"
    return nearest


def _name(part: Transfer) -> str:
    return part.task.partition("(")[0]


def _folder(part: FurtherImages) -> str:
    return PurePath(part.folder).name


def notes(analysis: Analysis) -> list[str]:
    """What the columns are of: how many images, how many seeds."""
    said = []
    if layers := analysis.representations:
        n = max(m.separation["cosine"][-1].n for m in layers.methods)
        over = f" ± is half of the 95 % interval over {n} seeds." if n > 1 else ""
        said.append(
            f"R² is the class separation of the features before the head by cosine distance, on {layers.separated}."
            f"{over}"
        )
    if analysis.predictions:
        said.append(
            f"Most alike: the other method whose runs, of unlike seeds, most often predict the same on "
            f"{analysis.predictions.images} test images."
        )
    said += [
        f"Transfer to {_name(part)}: accuracy of a linear classifier on the features, {part.train} training and "
        f"{part.test} test images."
        for part in analysis.transfer
    ]
    said += [
        f"{_folder(images)}: {ALL_METRICS[images.metric].label} on {images.images} images of {images.classes} classes "
        f"in {images.folder}; predictions are among these classes."
        for images in analysis.further
    ]
    if corruptions := analysis.corruptions:
        said.append(
            f"mCE: mean corruption error in % of that of {corruptions.baseline}, 15 corruptions × 5 severities of "
            f"{corruptions.images} test images; lower is better."
        )
    if corruptions := analysis.imagenet_c:
        said.append(
            f"mCE on ImageNet-C: mean corruption error in % of AlexNet's, on {corruptions.images} images of each of 75 "
            f"folders in {corruptions.folder}; lower is better."
        )
    return said + [f"{p.method}, seed {p.seed}: not measured, {p.problem}" for p in analysis.problems]


def print_analysis(analysis: Analysis, console: Console) -> None:
    """The table and what its numbers are of."""
    header, rows = key_table(analysis, whole=False)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    for title in header:
        justify = "left" if title in ("method", ALIKE) else "right"
        table.add_column(Text(title), justify=justify, no_wrap=title != ALIKE)  # type: ignore[arg-type]
    for name, *cells in rows:
        style = "cyan" if name == analysis.baseline else ""
        table.add_row(Text(name, style=style), *map(Text, cells))
    console.print(table)
    console.print()
    for note in notes(analysis):
        console.print(Text(f"• {note}"))


def analysis_markdown(analysis: Analysis) -> str:
    """analysis.md: the whole table with its notes."""
    header, rows = key_table(analysis)
    rule = f"| --- |{' ---: |' * (len(header) - 1)}"
    head, *body = (f"| {' | '.join(map(markdown, row))} |" for row in [header, *rows])
    said = [f"- {markdown(note)}" for note in notes(analysis)]
    return "\n".join([f"# {markdown(analysis.question)}", "", head, rule, *body, "", *said]) + "\n"
