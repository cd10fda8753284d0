"""`predict`: what a model says of images, files or arrays."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core import EquipoiseError
from ..data import ImageFiles
from ..data.decode import SUFFIXES
from ..data.walk import survey
from ..imbalance.prior import Prior
from .model import TrainedModel
from .predictions import Predictions

BATCH = 256  # images that pass the network at a time

Paths = Path | str | Iterable[Path | str]


@dataclass(frozen=True)
class Found:
    """Image files, and sentences about what stands in a folder and is none."""

    paths: list[Path]
    problems: list[tuple[Path, str]]


def predict(model: TrainedModel | Path | str, images: Any, *, prior: Prior | None = None) -> Predictions:
    """Classes and probabilities of images.

    Args:
        model: a `TrainedModel`, or the folder of a saved one.
        images: a path or several, of files or folders, which are looked through; or uint8 images (N, c, h, w) as a
            tensor or an array. A file that cannot be read has an error in place of a prediction.
        prior: how often each class comes where the images are from: "uniform", "training", a table by class name, a
            sequence in the order of the classes, or what `equipoise predict --prior` takes. By default the frequencies
            that the method aims at.
    """
    model = model if isinstance(model, TrainedModel) else TrainedModel.load(model)
    weights = model.prior(prior)
    if isinstance(images, Tensor | np.ndarray):
        return _of_arrays(model, images, weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's, of what is then read all the same or refused
        return Predictions.joined(model.class_names, predicted_parts(model, find_images(images), weights))


def find_images(places: Paths) -> Found:
    """The files that are named, and the images of the folders that are named, in the order of their names."""
    paths, problems = [], []
    for place in [places] if isinstance(places, str | Path) else places:
        if not Path(place).is_dir():
            paths.append(Path(place))
            continue
        inside, wrong = survey(Path(place), Path(place), SUFFIXES)
        paths += [file.path for file in inside]
        problems += [(Path(place), problem) for problem in wrong]
    return Found(paths, problems)


def predicted_parts(model: TrainedModel, given: Found, prior: Tensor | None = None) -> Iterator[Predictions]:
    """What the model says of the files, a part at a time and in their order, and at the end what was no file."""
    files, done = ImageFiles(given.paths, model.preprocessing.frame), 0
    for images, errors in files.readable(BATCH):
        probabilities = _unknown(len(errors), model)
        if len(images):
            readable = [why is None for why in errors]
            probabilities[readable] = model(model.preprocessing.of_files(images), prior).cpu().numpy()
        names = tuple(str(path) for path in given.paths[done : done + len(errors)])
        yield Predictions(names, model.class_names, probabilities, tuple(errors))
        done += len(errors)
    if given.problems:
        places, problems = zip(*given.problems, strict=True)
        yield Predictions(tuple(map(str, places)), model.class_names, _unknown(len(places), model), problems)


def _unknown(n: int, model: TrainedModel) -> np.ndarray:
    return np.full((n, len(model.class_names)), np.nan, np.float32)


def _of_arrays(model: TrainedModel, images: Tensor | np.ndarray, prior: Tensor | None) -> Predictions:
    if isinstance(images, np.ndarray) and images.dtype != np.uint8:
        raise EquipoiseError(f"expected uint8 images with values 0 to 255, got an array of {images.dtype}")
    given = model.preprocessing.checked(torch.as_tensor(images))
    parts = [model(part, prior).cpu().numpy() for part in given.split(BATCH) if len(part)]
    names = tuple(str(i) for i in range(len(given)))
    return Predictions(names, model.class_names, np.concatenate([_unknown(0, model), *parts]), (None,) * len(names))
