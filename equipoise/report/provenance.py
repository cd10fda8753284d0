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
    states = {"finished": results.finished, "failed": results.failed, "missing": results.missing}
    facts = [
        ("Study", results.name),
        ("Runs", ", ".join(f"{len(runs)} {state}" for state, runs in states.items())),
        ("Seeds", _listed(results.seeds)),
        ("Test set first opened", "{first_opened}, by equipoise {by_version}".format(**opened) if opened else "never"),
        ("Computing time", duration(sum(record.seconds for record in records))),
        ("Runs ended", f"{ended[0]} to {ended[-1]}" if ended else "none"),
        ("Device", _listed(record.device for record in records)),
        ("Data fingerprint", _listed(record.data for record in records)),
    ]
    tools = dict.fromkeys(name for record in records for name in record.versions)
    facts += [(name, _listed(record.versions.get(name, "not recorded") for record in records)) for name in tools]
    return facts


def _listed(values: Iterable[object]) -> str:
    """Each value once, in order of appearance."""
    texts = list(dict.fromkeys(str(value) for value in values))
    return ", ".join(texts) or "none"
