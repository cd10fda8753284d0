"""How a run does on test images from elsewhere: a folder with one folder per class, for all the task's or some."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from ...analysis import subset_logits
from ...analysis.statistics.priority import Priority, score
from ...core import EquipoiseError
from ...data import FurtherTest, Split, Task, load_further
from ...store.analysis import FurtherImages, MethodElsewhere
from .predictor import Predictor
from .subjects import Numbers, Subject, by_method, drawn, over_seeds

NAMES = "names.json", "names.txt"  # in the folder: which class each of its folders is


class Elsewhere:
    """A folder of further test images, at most so many of them; they are read once, for all runs of a study."""

    def __init__(self, path: str, images: int, priority: Priority) -> None:
        self.path, self.images, self.priority = path, images, priority
        self.read: FurtherTest | None = None

    @property
    def part(self) -> str:
        """The name of what is kept of a run."""
        return f"further-{hashlib.sha256(self.path.encode()).hexdigest()[:8]}"

    @property
    def settings(self) -> Numbers:
        return {"folder": self.path, "images": self.images, "priority": self.priority.to_dict()}

    def measure(self, predictor: Predictor) -> Numbers:
        """The study's metric there, and on its own test images of the same classes; other classes are ruled out."""
        task = predictor.run.task
        self.read = further = self.read or self._load(task)
        own = task.test
        same = torch.isin(own.labels, torch.tensor(further.classes, device=own.labels.device)).nonzero().flatten()
        (there, accuracy), (here, _) = (
            self._judged(predictor, split, further) for split in (further.split, own.take(same.cpu()))
        )
        return {
            "score": there,
            "own_score": here,
            "accuracy": accuracy,
            "images": min(len(further.split), self.images),
            "classes": len(further.classes),
        }

    def _judged(self, predictor: Predictor, split: Split, further: FurtherTest) -> tuple[float, float]:
        """The study's metric, and the share that is right, where a prediction is one of the classes that are there."""
        task, device = predictor.run.task, predictor.run.device
        images = split.images.to(device) if isinstance(split.images, Tensor) else split.images
        labels = split.labels.to(device)
        logits = subset_logits(predictor.logits(Split(images, labels)).float(), further.classes)
        right = float((logits.argmax(dim=1) == labels.cpu()).double().mean())
        return score(logits, labels.cpu(), task.class_counts.cpu(), self.priority, task.class_names), right

    def _load(self, task: Task) -> FurtherTest:
        names = next((Path(self.path) / name for name in NAMES if (Path(self.path) / name).exists()), None)
        images = load_further(self.path, task, names)
        return FurtherTest(drawn(images.split, self.images).dense(), images.classes, images.absent)


def checked_folder(path: str) -> str:
    """The same folder wherever the command is given from; an error if it is not there."""
    folder = Path(path).expanduser().resolve()
    if not folder.is_dir():
        raise EquipoiseError(f"{path} is not a folder; --further wants one that holds a folder of images a class")
    return str(folder)


def summarize_further(
    subjects: Sequence[Subject], numbers: Mapping[str, Numbers], elsewhere: Elsewhere
) -> FurtherImages:
    """Each method's scores over seeds, with intervals."""
    first = numbers[subjects[0].key]
    methods = []
    for name, group in by_method(subjects).items():
        measures = ("score", "own_score", "accuracy")
        methods.append(MethodElsewhere(name, *(over_seeds([numbers[s.key][m] for s in group]) for m in measures)))
    return FurtherImages(
        folder=elsewhere.path,
        metric=elsewhere.priority.metric,
        images=first["images"],
        classes=first["classes"],
        methods=tuple(methods),
    )
