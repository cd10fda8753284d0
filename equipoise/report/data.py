"""What a report says of the data: that all runs saw the same, and the classes of which the test set tells nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ..core import EquipoiseError
from ..store import Record
from .results import Results, Run


def refuse_unlike_data(runs: Iterable[Run]) -> None:
    """Stop where runs of one task and one seed saw other images or classes: no difference of theirs is a method's."""
    seen: dict[str, dict[tuple[str, ...], list[Run]]] = {}
    for run in runs:
        if run.record and run.finished:
            of_task = seen.setdefault(f"{_asked(run.record)} {run.seed}", {})
            of_task.setdefault(_identity(run.record), []).append(run)
    for of_task in seen.values():
        if len(of_task) > 1:
            saw = [
                f"{_told(runs[0].record)}: {', '.join(f'{run.method}, seed {run.seed}' for run in runs)}"
                for runs in of_task.values()
            ]
            raise EquipoiseError(
                f"runs of this study saw unlike data, so nothing can be said of their methods. {'; '.join(saw)}. "
                "Run the study again in another folder, with --out: all methods are then trained on the same images"
            )


def untested_classes(results: Results) -> list[str]:
    """Names of the classes that no test image is of."""
    tested = {label for run in results.finished for label, _ in run.confusion}
    return [name for label, name in enumerate(results.class_names) if label not in tested] if tested else []


def data_notes(results: Results) -> list[str]:
    """Sentences on what the test set cannot tell; none where it has images of every class."""
    absent = untested_classes(results)
    if not absent:
        return []
    count, more = len(results.class_names), f", and {len(absent) - 10} more" if len(absent) > 10 else ""
    classes, they = ("class", "it is") if len(absent) == 1 else ("classes", "they are")
    return [
        f"No test image is of {classes} {', '.join(absent[:10])}{more}: nothing here says how well {they} recognised; "
        f"averages over classes are over {count - len(absent)} of {count}."
    ]


def sizes(results: Results) -> str:
    """How unlike the classes are in size, as they were trained on.

    >>> from types import SimpleNamespace
    >>> sizes(SimpleNamespace(class_counts=(280, 40, 10)))
    'the largest class 28 times the smallest'
    """
    counts = results.class_counts
    if not counts or min(counts) == max(counts):
        return ""
    return f"the largest class {max(counts) / min(counts):.3g} times the smallest"


def _asked(record: Record) -> str:
    """The task as it was asked for, without what it turned out to be or where it lay."""
    task = {key: value for key, value in (record.recipe.get("task") or {}).items() if key != "content"}
    return json.dumps({**task, "name": str(task.get("name", "")).partition("(")[0]}, sort_keys=True)


def _identity(record: Record) -> tuple[str, ...]:
    return (_content(record), record.data, *record.class_names)


def _content(record: Record) -> str:
    return str((record.recipe.get("task") or {}).get("content") or "")


def _told(record: Record | None) -> str:
    return f"Data {_content(record) or record.data} of {len(record.class_names)} classes" if record else ""
