"""`equipoise.board`: scores from any number of studies on one page, ready to publish."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..core import EquipoiseError
from ..core.tables import frame, html_paragraphs, html_table
from ..report import Board, Collected, Refused, make_board, write_board
from ..report.render.board import board_table, board_title
from .folders import study_folders
from .results import Results

COLUMNS = ("method", "data", "network", "study", "metric", "n", "mean", "low", "high", "fingerprint", "version")


class BoardResults:
    """A board of records. `board` has everything as plain data: `board.rows`, and `board.refused` with the reasons."""

    def __init__(self, board: Board) -> None:
        self.board = board

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each method, data set and metric."""
        return [
            {
                **{name: getattr(row, name) for name in ("method", "data", "network", "study")},
                "metric": metric,
                "n": e.n,
                "mean": e.mean,
                "low": e.low,
                "high": e.high,
                "fingerprint": row.fingerprint,
                "version": row.version,
            }
            for row in self.board.rows
            for metric, e in row.estimates.items()
        ]

    @property
    def refused(self) -> list[str]:
        """What is not on the board, and why."""
        return [str(each) for each in self.board.refused]

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame."""
        return frame(self.rows, COLUMNS)

    def report(self, folder: Path | str) -> Path:
        """Write board.html, board.csv and board.json into a folder, and give the path of the page."""
        return write_board(self.board, Path(folder))

    def __repr__(self) -> str:
        return "\n".join([board_title(self.board), *(f"refused: {reason}" for reason in self.refused)])

    def _repr_html_(self) -> str:
        table = board_table(self.board)
        return html_paragraphs(repr(self)) + html_table(
            (column.title for column in table.columns), (cells for _, cells in table.rows)
        )


def board(*folders: Path | str) -> BoardResults:
    """Put the records of studies on one page: method × data set, with seeds, fingerprint and version.

    `folders` are those that `run` wrote, or folders of such folders. A row without six finished seeds or without the
    fingerprint of its images is refused, and so is a study that has not ended: `refused` says why.
    """
    studies: list[Collected] = []
    refused: list[Refused] = []
    for place in (place for folder in folders for place in study_folders(Path(folder))):
        collected = _collected(place)
        studies += [collected] if isinstance(collected, Collected) else []
        refused += [collected] if isinstance(collected, Refused) else []
    return BoardResults(make_board(studies, refused))


def _collected(place: Path) -> Collected | Refused:
    try:
        return Results(place).collected
    except EquipoiseError as error:  # it has not ended, is damaged, or its runs saw different data
        return Refused(place.name, "", str(error))
