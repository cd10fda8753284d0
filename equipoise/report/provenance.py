"""Where the numbers came from: runs, times, machines, versions, data, and when the test set was opened."""

from __future__ import annotations

from collections.abc import Iterable

from .collect import Results
from .words import duration


def provenance(results: Results) -> list[tuple[str, str]]:
    """(what, text) pairs, in the order to be read; only facts of the store, so that the same store says the same."""
    records = {run.key: run.record for run in results.runs if run.record}.values()
    ended = sorted(record.ended for record in records)
    opened = results.opened
    facts = [
        ("Study", results.name),
        ("Runs", f"{len(results.finished)} finished, {len(results.failed)} failed, {len(results.missing)} missing, of {len(results.runs)}"),
        ("Seeds", _listed(results.seeds)),
        ("Test set opened", f"{opened['first_opened']}, first, by equipoise {opened['by_version']}" if opened else "not yet"),
        ("Computing time", duration(sum(record.seconds for record in records))),
        ("Runs ended", f"{ended[0]} to {ended[-1]}" if ended else "none"),
        ("Device", _listed(record.device for record in records)),
        ("Data fingerprint", _listed(record.data for record in records)),
    ]  # fmt: skip
    tools = dict.fromkeys(name for record in records for name in record.versions)
    facts += [(name, _listed(record.versions.get(name, "not recorded") for record in records)) for name in tools]
    return facts


def _listed(values: Iterable[object]) -> str:
    """Each value once, in order of appearance."""
    texts = list(dict.fromkeys(str(value) for value in values))
    return ", ".join(texts) or "none"
