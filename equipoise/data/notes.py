"""What a user should know of a task before anything is trained on it, in sentences."""

from __future__ import annotations

from pathlib import Path

import torch

from ..core import Spec, card
from ..core.escaping import visible
from .names import listed
from .place import PLACE
from .sources import OFFICIAL, Official
from .task import Split, Task


def data_notes(task: Task, whole: bool = False) -> list[str]:
    """Sizes and imbalance, the classes of which nothing will be known, and where a published set is not complete.

    `whole` says that no training image was left out by choice, so that their number is the set's own.
    """
    counts = task.class_counts.tolist()
    least, most = min(counts), max(counts)
    sizes = f"{len(task.train):,} training, {len(task.valid):,} validation and {len(task.test):,} test images"
    said = f"{_called(task.name)}: {sizes} of {task.num_classes} classes"
    if most > least:
        said += f"; the largest class has {most / least:.3g} times as many as the smallest ({most:,} and {least:,})"
    notes = [f"{said}.", *_unofficial(task, whole)]
    for split, consequence in (
        (task.test, "nothing will be known of {them}, and averages over classes leave {them} out"),
        (task.valid, "what is chosen on validation data is chosen without {them}"),
    ):
        absent = _absent(task, split) if len(split) else []
        if absent:
            one = len(absent) == 1
            classes = f"class{'' if one else 'es'} {listed(absent, 10)}"
            which = "test" if split is task.test else "validation"
            notes.append(f"No {which} image is of {classes}: {consequence.format(them='it' if one else 'them')}.")
    return notes


def _called(name: str) -> str:
    """A task by its name; one of a user's own images by the name of their folder.

    >>> _called("folder(path='/home/ann/photos', size=64, groups='g.csv')"), _called("digits")
    ('photos', 'digits')
    """
    place = dict(Spec.parse(name).params).get(PLACE)
    return visible(Path(place).name or name) if isinstance(place, str) else name


def _absent(task: Task, split: Split) -> list[str]:
    there = torch.bincount(split.labels.cpu(), minlength=task.num_classes).tolist()
    return [name for name, count in zip(task.class_names, there, strict=True) if not count]


def _unofficial(task: Task, whole: bool) -> list[str]:
    """What a published set has more or less of than its authors say."""
    official = OFFICIAL.get(Spec.parse(task.name).name)
    if official is None or _is_varied(task.name, official):
        return []
    size = official.size
    training = len(task.train) + len(task.valid)
    pairs = [("classes", task.num_classes, {size.classes}), ("test images", len(task.test), {size.test, 0})]
    if whole:
        pairs.append(("training and validation images", training, {size.train, size.train + size.valid}))
    found = [f"{here:,} {what}, officially {max(expected):,}" for what, here, expected in pairs if here not in expected]
    if not found:
        return []
    return [f"{official.task} is not as published: it has {'; '.join(found)}. Published results do not compare."]


def _is_varied(name: str, official: Official) -> bool:
    """Whether the task is asked for with parameters that change which images it has."""
    defaults = card(official.task, "task").parameters
    given = dict(Spec.parse(name).params)
    return any(value != defaults[key].default for key, value in given.items() if key in official.varied_by)
