"""How a run does on test images from elsewhere: a folder with one folder a class, for all the task's or some."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from ...analysis import balanced_accuracy, subset_logits
from ...core import EquipoiseError
from ...data import FurtherTest, Split, Task, load_further
from ...train import Run
from ...train.predict import predict_logits
from .subjects import Numbers, Subject, by_method, drawn, estimate

NAMES = "names.json", "names.txt"  # in the folder: which class each of its folders is


class Elsewhere:
    """A folder of further test images, at most so many of them; they are read once, for all runs of a study."""

    def __init__(self, path: str, images: int) -> None:
        self.path, self.images = path, images
        self.read: FurtherTest | None = None

    @property
    def part(self) -> str:
        """The name of what is kept of a run."""
        return f"further-{hashlib.sha256(self.path.encode()).hexdigest()[:8]}"

    @property
    def settings(self) -> Numbers:
        return {"folder": self.path, "images": self.images}

    def measure(self, run: Run) -> Numbers:
        """Accuracies there, and on the task's own test images of the same classes; other classes are ruled out."""
        self.read = further = self.read or self._load(run.task)
        own = run.task.test
        same = torch.isin(own.labels, torch.tensor(further.classes, device=own.labels.device)).nonzero().flatten()
        there, here = (_accuracies(run, split, further) for split in (further.split, own.take(same.cpu())))
        return {
            "accuracy": there[0],
            "balanced_accuracy": there[1],
            "own_accuracy": here[0],
            "images": min(len(further.split), self.images),
            "classes": len(further.classes),
        }

    def _load(self, task: Task) -> FurtherTest:
        names = next((Path(self.path) / name for name in NAMES if (Path(self.path) / name).exists()), None)
        found = load_further(self.path, task, names)
        return FurtherTest(drawn(found.split, self.images).in_memory(), found.classes, found.absent)


def checked_folder(path: str) -> str:
    """The same folder wherever the command is given from; an error if it is not there."""
    folder = Path(path).expanduser().resolve()
    if not folder.is_dir():
        raise EquipoiseError(f"{path} is not a folder; --further wants one that holds a folder of images a class")
    return str(folder)


def _accuracies(run: Run, split: Split, further: FurtherTest) -> tuple[float, float]:
    """Of all images, and the mean over classes, where a prediction is one of the classes that are there."""
    images = split.images.to(run.device) if isinstance(split.images, Tensor) else split.images
    labels = split.labels.to(run.device)
    pred = subset_logits(predict_logits(run, Split(images, labels)).float(), further.classes).argmax(dim=1)
    right = float((pred == labels).double().mean())
    return right, float(balanced_accuracy(pred, labels, run.task.num_classes))


def summarize_further(subjects: Sequence[Subject], found: Mapping[str, Numbers], elsewhere: Elsewhere) -> Numbers:
    """Each method's accuracies over seeds, with intervals."""
    first, measures = found[subjects[0].key], ("accuracy", "balanced_accuracy", "own_accuracy")
    methods = [
        {"name": name, **{m: estimate([found[s.key][m] for s in group]) for m in measures}}
        for name, group in by_method(subjects).items()
    ]
    return {"folder": elsewhere.path, "images": first["images"], "classes": first["classes"], "methods": methods}
