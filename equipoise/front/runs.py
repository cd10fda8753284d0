"""`equipoise.run`: from a study to its results."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core import Card, cards
from ..store import Store
from ..study import (
    Budget,
    How,
    Listener,
    Study,
    run_study,
    run_until_decided,
    usual_listener,
)
from .audited import outdated_audits
from .results import Results


def run(
    study: Study | Mapping[str, Any] | Path | str,
    out: Path | str | None = None,
    *,
    device: str | None = None,
    workers: int | None = None,
    retry: bool = False,
    until_decided: Budget | bool = False,
    peek: bool = False,
    compiled: bool = False,
    fast: bool = False,
    tensorboard: bool = False,
    pilot: bool = False,
    engine: str = "local",
    address: str | None = None,
    listener: Listener | None = None,
) -> Results:
    """Train every method of a study with every seed, and give what came out.

    `study` is a `Study`, the plain data of one, or the path of a TOML file. Runs are kept in `out`, by default
    runs/NAME: those that are there are not done again, and a call that was stopped goes on where it was.

    `device` is "cpu", "cuda" or "cuda:1", by default a GPU if there is one; `workers` are processes, by default one
    per core. `retry` does failed runs again. `until_decided` adds seeds in rounds until the tiers are settled, judged
    on validation data, or with `peek` on test data. `compiled`, `fast`, `tensorboard` and `pilot` are the options of
    the same names of `equipoise run`. `engine` "ray" trains on the Ray cluster at `address`, or on one that is found or
    started on this machine; `workers` are then packs of runs that are handed to it at a time. `listener` is told how it
    goes; by default a terminal or a notebook, `Listener()` is silence.

    In a script, call it below ``if __name__ == "__main__":``, because every worker imports the script. Raises
    `equipoise.study.Interrupted` after Ctrl-C; all that was done is kept.
    """
    asked, listener = as_study(study), listener or usual_listener()
    store = Store(out or Path("runs") / asked.name)
    chosen = {"compiled": compiled, "fast": fast, "tensorboard": tensorboard, "pilot": pilot}
    how = How.on(device, workers, engine=engine, address=address, **chosen)
    if retry:
        store.forget_failures()
    for sentence in outdated_audits(asked, store):
        listener.say(sentence)
    if until_decided:
        budget = until_decided if isinstance(until_decided, Budget) else Budget()
        run_until_decided(asked, store, how, listener, budget, peek=peek)
    else:
        run_study(asked, store, how, listener)
    return Results(store)


def as_study(study: Study | Mapping[str, Any] | Path | str) -> Study:
    """A study as it is, from plain data, or read from a TOML file."""
    if isinstance(study, Study):
        return study
    return Study.from_dict(study) if isinstance(study, Mapping) else Study.from_toml(study)


def list_methods(pattern: str = "*", kind: str | None = None) -> list[Card]:
    """The methods whose names match a pattern such as ``"*balanced*"``, of one kind or of all.

    >>> [card.name for card in list_methods("*balanced*", "loss")]
    ['balanced_softmax']
    """
    return [card for card in cards(kind) if fnmatch.fnmatch(card.name, pattern)]
