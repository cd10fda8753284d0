"""Whether the test set was opened too early, or again after more runs: what a reader must know of the error rate."""

from __future__ import annotations

from ..analysis.statistics.sequential import Rounds
from ..store import Damaged, Opened, Store
from ..store.store import REMEDIES


def rounds_of(store: Store) -> Rounds | None:
    """The plan and the findings of a study that adds seeds in rounds; None for one with its seeds fixed."""
    if store.holds(Rounds):
        return store.document(Rounds)
    if store.study().rounds:
        raise Damaged(store.path / Rounds.FILE, "it is gone", REMEDIES[Rounds.FILE])
    return None


def still_to_do(store: Store) -> str | None:
    """What is missing for the study to have ended, in words; None if it has."""
    rounds = rounds_of(store)
    if rounds is not None:
        return "it is in the middle of its rounds" if rounds.ended is None else None
    keys = store.study().keys
    missing = sum(not store.has(key) for key in keys)
    return f"{missing} of {len(keys)} runs are still to do" if missing else None


def seal_notes(opened: Opened | None, rounds: Rounds | None) -> list[str]:
    """Sentences on openings of the test set that a plain report at the end would not have; none if there was none."""
    openings = opened.openings if opened else ()
    notes = []
    for opening in openings:
        if opening.peek:
            runs = "1 run" if len(opening.keys) == 1 else f"{len(opening.keys)} runs"
            notes.append(f"The test results of {runs} were looked at on {opening.when}, before the study had ended.")
    if rounds is not None and notes:
        notes.append("The claims count on that: they hold whatever made the study end at one of its planned looks.")
    elif rounds is None and len(openings) > 1:
        if not notes:
            notes.append(f"Runs were added on after the test set had been opened, {len(openings) - 1} times.")
        notes.append("Each look after the first is judged with what those before left of the 5 % of error.")
    if opened and opened.lost:
        notes.append(
            f"The list of what was opened was found missing or damaged on {opened.lost} and begun anew: what was "
            "compared before is not counted, so the error rate may be higher than it says."
        )
    return notes
