"""board.html, board.csv and board.json, and what was refused on a terminal."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...analysis import METRICS
from ...core.escaping import csv_cell
from ...core.words import counted
from ..board import LEAST_SEEDS, Board, BoardRow
from .files import pretty_json, write_each
from .shell import rendered
from .tables import SHORT, Cell, Column, estimate_cell
from .words import heading, title_of

SHOWN = ("balanced_accuracy", "accuracy", "worst_class", "nll", "ece")  # of the metrics; the files have all


@dataclass(frozen=True)
class BoardTable:
    columns: tuple[Column, ...]
    rows: tuple[tuple[BoardRow, tuple[Cell, ...]], ...]


def board_title(board: Board) -> str:
    data = len({row.data for row in board.rows})
    methods = len({row.method for row in board.rows})
    return f"{counted(methods, 'method')} on {counted(data, 'data set')}"


def board_table(board: Board) -> BoardTable:
    """Method, data and network; the usual metrics; and what the numbers rest on."""
    columns = [
        Column("method", "Method", "as its study calls it", numeric=False),
        Column("data", "Data", "with what was done to the class sizes", numeric=False),
        Column("network", "Network", "", numeric=False),
        *(
            Column(metric, heading(metric), title_of(metric), high_first=METRICS[metric].higher_is_better)
            for metric in SHOWN
        ),
        Column("n", "Seeds", "finished runs", high_first=True),
        Column("parameters", "Parameters", "numbers the network learns"),
        Column("changes", "Recipe", "in what it differs from the baseline of its study", numeric=False),
        Column("fingerprint", "Fingerprint", "of the images drawn for all seeds", numeric=False),
        Column("version", "Version", "of equipoise", numeric=False),
        Column("key", "Key", "of the first seed's run", numeric=False),
    ]
    return BoardTable(tuple(columns), tuple((row, _cells(row)) for row in board.rows))


def _cells(row: BoardRow) -> tuple[Cell, ...]:
    seeds = f"seeds {', '.join(map(str, row.seeds))}"
    return (
        Cell(row.method, sort=row.method),
        Cell(row.data, sort=row.data),
        Cell(row.network, sort=row.network),
        *(estimate_cell(row.estimates[metric], metric, usual_n=len(row.seeds)) for metric in SHOWN),
        Cell(str(len(row.seeds)), sort=len(row.seeds), note=seeds),
        Cell(f"{row.parameters:,}", sort=row.parameters),
        Cell(row.changes, sort=row.changes),
        Cell(row.fingerprint, sort=row.fingerprint, note=seeds),
        Cell(row.version, sort=row.version),
        Cell(row.keys[0][:SHORT], f"of {row.study}", sort=row.keys[0], note="\n".join(row.keys)),
    )


def render_board(board: Board) -> str:
    """The page, ready to publish: it needs nothing else, and all text is escaped."""
    content = {
        "title": board_title(board),
        "name": "board",
        "contents": [],
        "table": board_table(board),
        "refused": [str(each) for each in board.refused],
        "least": LEAST_SEEDS,
    }
    return rendered("board.html", ("page.js",), content)


def board_csv(board: Board) -> str:
    """A line for each row and metric, at full precision."""
    text = io.StringIO(newline="")
    sheet = csv.writer(text, lineterminator="\n")
    about = ("method", "data", "network", "study", "fingerprint", "version", "parameters", "changes")
    sheet.writerow([*about, "metric", "n", "mean", "low", "high", "key"])
    for row in board.rows:
        for metric, e in row.estimates.items():
            own = [getattr(row, name) for name in about]
            sheet.writerow(map(csv_cell, [*own, metric, e.n, e.mean, e.low, e.high, row.keys[0]]))
    return text.getvalue()


def write_board(board: Board, folder: Path) -> Path:
    """Write board.html, board.csv and board.json into `folder`; returns the page's path."""
    plain = {"rows": [_plain(row) for row in board.rows], "refused": [asdict(each) for each in board.refused]}
    contents = {"json": pretty_json(plain), "csv": board_csv(board), "html": render_board(board)}
    write_each(folder, "board", contents)
    return folder / "board.html"


def _plain(row: BoardRow) -> dict[str, Any]:
    """JSON has no nan: None instead."""
    plain = asdict(row)
    for of_metric in plain["estimates"].values():
        of_metric |= {k: None for k, v in of_metric.items() if isinstance(v, float) and math.isnan(v)}
    return plain


def print_board(board: Board, console: Console) -> None:
    """The rows with their first metric, and what was refused with its reason."""
    console.print(Text(board_title(board), style="bold"))
    table = Table(
        "method", "data", "network", "seeds", heading(SHOWN[0]), box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False
    )
    for row in board.rows:
        score = estimate_cell(row.estimates[SHOWN[0]], SHOWN[0], usual_n=len(row.seeds))
        cells = (row.method, row.data, row.network, len(row.seeds), score)
        table.add_row(*(Text(str(cell)) for cell in cells))
    console.print(table)
    if board.refused:
        console.print(Text(f"{len(board.refused)} refused:", style="yellow"))
    for each in board.refused:
        console.print(Text(f"• {each}", style="yellow"))
