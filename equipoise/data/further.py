"""Test images from elsewhere, with the classes of a task or some of them: ImageNet-v2, -A, -R, -Sketch, or your own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from ..core import EquipoiseError
from ..core.escaping import visible
from .augment._operations import grey
from .frame import Frame
from .image_files import ImageFiles
from .names import listed
from .task import Split, Task, frame_of
from .walk import image_files, subfolders


@dataclass(frozen=True)
class FurtherTest:
    """A further test set of a task; labels are the task's.

    `classes` are those that have images here, for `equipoise.analysis.subset_logits`; `absent` names the others.
    """

    split: Split
    classes: tuple[int, ...]
    absent: tuple[str, ...]


def load_further(
    path: str | Path, task: Task, names: Mapping[str, str | None] | str | Path | None = None
) -> FurtherTest:
    """The images of a folder that has one folder per class, made as large as the task's and grey where those are.

    A folder belongs to the class that `names` has for it, else to the class of its name. Folders that are all whole
    numbers, none of them a class's name, are class indices, as in ImageNet-v2. Several folders may be of one class.

    Args:
        path: the folder of class folders; names that begin with a dot are passed over.
        task: says the classes, and the size and channels of images.
        names: folder -> class name, or a file that says so: a JSON object, or lines of a folder, a space and a class
            name. With None (null in JSON, or nothing in a line) a folder is left out.

    A folder that is of no class is an error: say what it is, or that it is to be left out, with `names`.
    """
    base, (channels, frame) = Path(path).expanduser(), _channels_and_frame(task)
    if not base.is_dir():
        raise EquipoiseError(f"{visible(base)} is not a folder; give the folder that holds one folder per class")
    folders = subfolders(base, base)
    class_of = _classes(base, folders, task.class_names, _read_names(names))
    files = [(f.path, label) for folder, label in class_of.items() for f in image_files(base / folder, base)]
    if not files:
        there = listed(folders) or "none"
        raise EquipoiseError(f"{visible(base)} has no images of the task; its folders are: {there}")
    labels, images = torch.tensor([label for _, label in files]), ImageFiles([file for file, _ in files], frame)
    classes = tuple(labels.unique().tolist())
    return FurtherTest(
        Split(images if channels == 3 else grey(images[:]).to(torch.uint8), labels),
        classes,
        tuple(name for label, name in enumerate(task.class_names) if label not in classes),
    )


def _channels_and_frame(task: Task) -> tuple[int, Frame]:
    _, channels, h, w = task.train.images.shape
    if h != w:
        raise EquipoiseError(f"images of {task.name} are {h} × {w}; further images can be made square alone")
    return channels, frame_of(task.train.images) or Frame(h)


def _classes(
    base: Path, folders: list[str], class_names: tuple[str, ...], names: Mapping[str, str | None]
) -> dict[str, int]:
    """The class index of each folder that is not left out."""
    index = {name: label for label, name in enumerate(class_names)}
    index |= {folder: index[visible(folder)] for folder in folders if visible(folder) in index}  # as the task shows it
    if not names and folders and all(f.isdecimal() and f not in index for f in folders):
        index |= {folder: int(folder) for folder in folders if int(folder) < len(class_names)}
    wanted = {folder: names.get(folder, folder) for folder in folders}
    strange = [f"{f} ({name})" if name != f else f for f, name in wanted.items() if name and name not in index]
    if strange:
        raise EquipoiseError(
            f"folders of {visible(base)} are of no class of the task: {listed(strange, 5)}; "
            "give names, a class or None for each"
        )
    return {folder: index[name] for folder, name in wanted.items() if name}


def _read_names(names: Mapping[str, str | None] | str | Path | None) -> Mapping[str, str | None]:
    if names is None or isinstance(names, Mapping):
        return names or {}
    path = Path(names).expanduser()
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix != ".json":
            lines = (line.split(maxsplit=1) for line in text.splitlines() if line.strip())
            return {folder: rest[0].strip() if rest else None for folder, *rest in lines}
        content = json.loads(text)
    except (OSError, ValueError) as error:
        raise EquipoiseError(
            f"{visible(path)} cannot be read ({error}); see load_further for what it is to hold"
        ) from None
    if not isinstance(content, dict) or not all(isinstance(name, str | None) for name in content.values()):
        raise EquipoiseError(f"{path} must hold one JSON object of folders and class names, or null")
    return content
