"""What a user should know of a task before anything is trained on it, in sentences."""

from __future__ import annotations

import torch

from .names import listed
from .task import Split, Task


def data_notes(task: Task) -> list[str]:
    """Sizes and imbalance, and the classes of which nothing will be known."""
    counts = task.class_counts.tolist()
    least, most = min(counts), max(counts)
    sizes = f"{len(task.train):,} training, {len(task.valid):,} validation and {len(task.test):,} test images"
    said = f"{task.name}: {sizes} of {task.num_classes} classes"
    if most > least:
        said += f"; the largest class has {most / least:.3g} times as many as the smallest ({most:,} and {least:,})"
    notes = [f"{said}."]
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


def _absent(task: Task, split: Split) -> list[str]:
    there = torch.bincount(split.labels.cpu(), minlength=task.num_classes).tolist()
    return [name for name, count in zip(task.class_names, there, strict=True) if not count]
