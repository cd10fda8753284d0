"""`Results`: what came out of a study, for programs and notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ..analysis import Verdict
from ..core import EquipoiseError, known
from ..core.tables import frame, html_table
from ..deploy import TrainedModel
from ..report import Collected, Estimate, Method, collect, failure_notes, ranked_table, still_to_do, write_report
from ..store import Store
from ..study import TrainedNetwork, best_device, trained_network
from .audited import note_audit
from .confused import note_confused
from .model import best_method, median_run, model_of_run

COLUMNS = (
    *("method", "tier", "n", "mean", "low", "high", "difference", "diff_low", "diff_high", "new_low", "new_high"),
    *("p_holm", "standing", "holds_for", "beats", "beats_low", "beats_high"),
)


class Results:
    """The results in a folder that a study was run in.

    Looking at any of them opens the test set, which the store writes down. A study that has not ended is shown only
    with `peek`, and every later report says so.
    """

    def __init__(self, store: Store | Path | str, *, peek: bool = False) -> None:
        self.store = store if isinstance(store, Store) else Store(store)
        left = still_to_do(self.store)
        self.early = left is not None  # whether the study has not ended
        if left and not peek:
            raise EquipoiseError(
                f"{self.store.path} has not ended: {left}. A report would open its test set. 'equipoise status' tells "
                "how it goes without; to look all the same, add --peek (in Python peek=True), and every later report "
                "will say so"
            )

    @cached_property
    def collected(self) -> Collected:
        """All that the report shows, as plain data."""
        note_audit(self.store)
        return collect(self.store)

    @property
    def verdict(self) -> Verdict:
        """Who is better than the baseline; `print("\\n".join(results.verdict.sentences()))` says it in words."""
        return self.collected.verdict

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each method, in the report's order: its score with interval, and its difference to the baseline."""
        return [
            {name: method.name if name == "method" else getattr(method.result, name) for name in COLUMNS}
            for method in self.collected.methods
        ]

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame."""
        return frame(self.rows, COLUMNS)

    def per_class(self) -> dict[str, dict[str, Estimate]]:
        """Recall of each class by method: the mean over seeds with its interval."""
        names = self.collected.class_names
        return {m.name: dict(zip(names, m.per_class, strict=False)) for m in self.collected.methods}

    def curves(self) -> dict[str, Mapping[str, tuple[Estimate, ...]]]:
        """Training curves by method, then by name: for each epoch the mean over seeds with its interval."""
        return {method.name: method.curves for method in self.collected.methods}

    def predictions(self, method: str, seed: int) -> dict[str, np.ndarray]:
        """What a run said of the test images: `logits` (N, C), `labels` (N,), `features` (N, d)."""
        _ = self.collected  # the opening of the test set is written down
        return self.store.open_test(self._key(method, seed))

    def network(self, method: str, seed: int, device: str | None = None) -> TrainedNetwork:
        """The trained network of a run, in evaluation mode: uint8 images (N, c, h, w) to logits (N, C)."""
        return trained_network(self.store, self._key(method, seed), best_device(device))

    def model(self, method: str | None = None, seed: int | None = None, device: str | None = None) -> TrainedModel:
        """The network of a run with all that is needed to use it elsewhere; `TrainedModel.save` keeps it in a folder.

        By default the first method of the verdict's ranking, and of its runs the one with the median validation score.
        """
        chosen = best_method(self.collected) if method is None else self._method(method)
        if seed is None:
            run = median_run(chosen, self.collected.metric)
        else:
            key = self._key(chosen.name, seed)
            run = next(run for run in chosen.runs if run.key == key)
        return model_of_run(self.store, self.collected, chosen, run, best_device(device))

    def report(self) -> Path:
        """Write report.html, report.md and the tables, and give the path of the page.

        For a user's own images the page shows some that were confused, if they can be read.
        """
        note_confused(self.store, self.collected)
        return write_report(self.store, self.collected)

    def _key(self, method: str, seed: int) -> str:
        chosen = self._method(method)
        runs = {run.seed: run for run in chosen.runs}
        if seed not in runs or not runs[seed].finished:
            there = ", ".join(str(s) for s, run in runs.items() if run.finished) or "none"
            raise EquipoiseError(f"{method} has no finished run with seed {seed}; finished: {there}")
        return runs[seed].key

    def _method(self, name: str) -> Method:
        methods = {method.name: method for method in self.collected.methods}
        return methods[known("method", name, methods)]

    def __repr__(self) -> str:
        return "\n".join([*self.collected.answer, *failure_notes(self.collected)])

    def _repr_html_(self) -> str:
        table = ranked_table(self.collected)
        rows = [row.cells for _, rows in table.tiers() for row in rows]
        answer = " ".join(map(escape, [*self.collected.answer, *failure_notes(self.collected)]))
        return f"<p>{answer}</p>" + html_table((column.title for column in table.columns), rows)
