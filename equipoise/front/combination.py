"""`equipoise.combine`: what several studies of the same methods say together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..core.tables import frame, html_paragraphs, html_table
from ..report import Combination, combine_studies, sentences, write_combined
from ..report.render.combined_tables import method_table
from ..store import Store
from .folders import study_folders
from .results import Results

COLUMNS = ("method", "data_sets", "mean", "low", "high", "p_holm", "tau", "next_low", "next_high", "rank", "standing")


class CombinedResults:
    """Several studies put together. `combination` has everything as plain data; `rows` and `effects` are its tables."""

    def __init__(self, combination: Combination) -> None:
        self.combination = combination

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each method, best first: its mean difference to the baseline over data sets, interval and p."""
        return [
            {
                "method": method.name,
                "data_sets": len(method.effects),
                **{name: getattr(method, name) for name in COLUMNS[2:]},
            }
            for method in self.combination.combined.methods
        ]

    @property
    def effects(self) -> list[dict[str, Any]]:
        """A row for each method and data set: its difference to the baseline over paired seeds."""
        return [
            {"method": method.name, "data": e.data, "n": e.n, "mean": e.mean, "low": e.low, "high": e.high}
            for method in self.combination.combined.methods
            for e in method.effects
        ]

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame."""
        return frame(self.rows, COLUMNS)

    def report(self, folder: Path | str) -> Path:
        """Write combined.html, combined.csv and combined.json into a folder, and give the path of the page."""
        return write_combined(self.combination, Path(folder))

    def __repr__(self) -> str:
        return "\n".join([*sentences(self.combination.combined), *self.combination.notices])

    def _repr_html_(self) -> str:
        table = method_table(self.combination.combined)
        return html_paragraphs(repr(self)) + html_table(table.header, table.rows)


def combine(*studies: Path | str | Store | Results, baseline: str | None = None, peek: bool = False) -> CombinedResults:
    """Put studies of the same methods together: on several data sets, imbalance ratios or networks.

    Args:
        studies: folders that `run` wrote, folders of such folders, or `Results`.
        baseline: the method that all are compared with; by default the baseline of the studies.
        peek: also take studies that have not ended, which every later report of theirs will say.

    Each data set counts the same. A method that is not in all studies counts where it is. docs/combine.md explains
    every number.
    """
    results = [each for study in studies for each in _results(study, peek)]
    return CombinedResults(combine_studies([each.collected for each in results], baseline))


def _results(study: Path | str | Store | Results, peek: bool) -> list[Results]:
    if isinstance(study, Results):
        return [study]
    stores = [study] if isinstance(study, Store) else [Store(folder) for folder in study_folders(Path(study))]
    return [Results(store, peek=peek) for store in stores]
