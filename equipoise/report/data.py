"""What a report says of the data: that all runs saw the same, and the classes of which the test set tells nothing."""

from __future__ import annotations

import json

from ..core import EquipoiseError
from ..store import Record, Store, StudyDocument
from ..store.recipes import recipe_of_data
from .collected import Collected


def refuse_unlike_data(study: StudyDocument, store: Store) -> None:
    """Stop where runs of one task and one seed saw other images or classes: no difference of theirs is a method's."""
    seen: dict[str, dict[tuple[str, ...], list[str]]] = {}
    for method in study.methods:
        for seed, key in zip(study.seeds, method.keys, strict=True):
            if store.finished(key):
                record = store.get(key)
                of_task = seen.setdefault(f"{_asked(record)} {seed}", {})
                of_task.setdefault(_identity(record), []).append(f"{method.name}, seed {seed}")
    for of_task in seen.values():
        if len(of_task) > 1:
            saw = [
                f"{content or data} ({len(classes)} classes): {', '.join(runs)}"
                for (content, data, *classes), runs in of_task.items()
            ]
            raise EquipoiseError(
                f"runs of this study saw different data, so nothing can be said of their methods. Data "
                f"{'; '.join(saw)}. "
                "Run the study again in another folder, with --out: all methods are then trained on the same images"
            )


def untested_classes(results: Collected) -> list[str]:
    """Names of the classes that no test image is of."""
    tested = {label for run in results.finished for label, _ in run.confusion}
    return [name for label, name in enumerate(results.class_names) if label not in tested] if tested else []


def data_notes(results: Collected) -> list[str]:
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


def sizes(results: Collected) -> str:
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
    task = recipe_of_data(record.recipe).get("task") or {}
    return json.dumps({key: value for key, value in task.items() if key != "content"}, sort_keys=True)


def _identity(record: Record) -> tuple[str, ...]:
    content = (record.recipe.get("task") or {}).get("content") or ""
    return (str(content), record.data, *record.class_names)
