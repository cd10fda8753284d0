"""`Predictions`: what a model said of images, as a table."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np

from ..core.escaping import csv_cell
from ..core.tables import frame, html_table
from ..core.words import counted

SHOWN = 20  # rows in a notebook
FORMATS = ("csv", "jsonl")


@dataclass(frozen=True, repr=False)
class Predictions:
    """One row for each image: its name, probabilities (C,), and an error where it could not be read."""

    images: tuple[str, ...]
    class_names: tuple[str, ...]
    probabilities: np.ndarray  # (N, C); NaN where an image could not be read
    errors: tuple[str | None, ...]

    @classmethod
    def joined(cls, class_names: tuple[str, ...], parts: Iterable[Predictions]) -> Predictions:
        """All parts as one."""
        every = list(parts)
        return cls(
            images=tuple(name for part in every for name in part.images),
            class_names=class_names,
            probabilities=np.concatenate(
                [np.empty((0, len(class_names)), np.float32), *(part.probabilities for part in every)]
            ),
            errors=tuple(why for part in every for why in part.errors),
        )

    def __len__(self) -> int:
        return len(self.images)

    @property
    def labels(self) -> list[str | None]:
        """The most probable class of each image."""
        return [row["prediction"] for row in self.rows()]

    def rows(self, top: int = 1) -> list[dict[str, Any]]:
        """A row for each image: `image`, `prediction`, `probability`, with `top` above 1 also `prediction_2` and so
        on, and `error`; None where there is no prediction."""
        top = min(top, len(self.class_names))
        best = np.argsort(-self.probabilities, axis=1, kind="stable")[:, :top]
        values, names, rows = np.take_along_axis(self.probabilities, best, axis=1).tolist(), columns(top), []
        for image, order, row, why in zip(self.images, best.tolist(), values, self.errors, strict=True):
            pairs = [cell for c, p in zip(order, row, strict=True) for cell in (self.class_names[c], p)]
            cells = pairs if why is None else [None] * len(pairs)
            rows.append(dict(zip(names, [image, *cells, why], strict=True)))
        return rows

    def to_frame(self, top: int = 1) -> Any:
        """The rows as a pandas DataFrame."""
        return frame(self.rows(top), columns(min(top, len(self.class_names))))

    def __repr__(self) -> str:
        failed = sum(why is not None for why in self.errors)
        return f"<Predictions: {counted(len(self) - failed, 'image')}, {failed} that could not be read>"

    def _repr_html_(self) -> str:
        more = f"<p>and {len(self) - SHOWN:,} more</p>" if len(self) > SHOWN else ""
        return html_table(columns(1), (map(_words, row.values()) for row in self.rows()[:SHOWN])) + more


def columns(top: int) -> list[str]:
    """
    >>> columns(2)
    ['image', 'prediction', 'probability', 'prediction_2', 'probability_2', 'error']
    """
    ranks = ["", *(f"_{rank}" for rank in range(2, top + 1))]
    return ["image", *(f"{what}{rank}" for rank in ranks for what in ("prediction", "probability")), "error"]


class Writer:
    """Writes rows as CSV or as JSON lines, part by part."""

    def __init__(self, out: TextIO, form: str, top: int) -> None:
        self.out, self.form = out, form
        self.table = csv.writer(out, lineterminator="\n")
        if form == "csv":
            self.table.writerow(columns(top))

    def write(self, rows: Iterable[dict[str, Any]]) -> None:
        if self.form == "csv":
            self.table.writerows([_csv(value) for value in row.values()] for row in rows)
        else:  # ASCII, so that a file's name that is no text is still JSON
            self.out.writelines(json.dumps(row) + "\n" for row in rows)


def _csv(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else csv_cell(value)


def _words(value: Any) -> str:
    return "" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
