"""Where the numbers came from: runs, times, machines, versions, data, and when the test set was opened."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.times import duration
from ..store import Opened
from .collected import Collected
from .data import data_notes
from .seal import seal_notes


def provenance(results: Collected) -> list[tuple[str, str]]:
    """(what, text) pairs, in the order to be read; only facts of the store, so that the same store says the same."""
    records = results.records
    ended = sorted(record.ended for record in records)
    notes = [(run.method, run.seed, note) for run in results.runs if run.record for note in run.record.notes]
    states = {"finished": results.finished, "failed": results.failed, "missing": results.missing}
    unchecked = sum(record.finished and not record.files for record in records)
    left_out = len(results.runs) - len(results.planned)
    facts = [
        ("Study", results.name),
        ("Runs", ", ".join(f"{len(runs)} {state}" for state, runs in states.items())),
        *([("Runs of methods left out of later rounds", f"{left_out}, not done")] if left_out else []),
        *([("Runs without checksums", f"{unchecked}, written by an earlier version")] if unchecked else []),
        ("Seeds", _listed(results.seeds)),
        ("Test set first opened", _opening(results.opened) if results.opened else "never"),
        *(("The seal of the test set", note) for note in seal_notes(results.opened, results.rounds)),
        ("Computing time", duration(sum(record.seconds for record in records))),
        ("Runs ended", f"{ended[0]} to {ended[-1]}" if ended else "none"),
        *((f"Of {method}, seed {seed}", note) for method, seed, note in notes),
        ("Hardware", devices(results) or "none"),
        *(("Classes that are not tested", note) for note in data_notes(results)),
        ("Data fingerprint", _listed(record.data for record in records if record.data)),
    ]
    tools = dict.fromkeys(name for record in records for name in record.versions)
    facts += [(name, _listed(record.versions.get(name, "not recorded") for record in records)) for name in tools]
    return facts


def devices(results: Collected) -> str:
    """Each device that runs were done on, once."""
    return ", ".join(dict.fromkeys(record.device for record in results.records))


def _opening(opened: Opened) -> str:
    return f"{opened.first_opened}, by equipoise {opened.by_version}"


def _listed(values: Iterable[object]) -> str:
    """Each value once, in order of appearance."""
    texts = list(dict.fromkeys(str(value) for value in values))
    return ", ".join(texts) or "none"
