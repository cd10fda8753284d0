"""One run's representation of images in numbers, layer by layer.

As in the loss functions paper: class separation, spectra and distances are of training images; sparsity, angular visual
hardness and what is compared between runs (CKA) are of test images.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...analysis import (
    ClassSeparation,
    angular_visual_hardness,
    class_centroids,
    class_separation,
    cosine_distances,
    gram_matrix,
    kernel_density,
    singular_values,
)
from ...data import Split
from ...store import Store
from ...train import Run
from ...train.layers import FEATURES, Activations, activations, pooled
from .kept import Features, Grams, write_kept
from .subjects import Numbers, place_in_class

COMPARED = 2000  # test images of which layers are compared between runs
BATCH = 250  # images whose similarities to each other are held at a time
EMBEDDED = 1000  # images of train, and of test, whose features are kept to be drawn
PAIRED = 10_000  # images between which all distances are taken, as in the paper
BINS = 80
SPECTRUM = 256  # singular values kept at most
DISTANCES = ("cosine", "euclidean")
HARDNESS = torch.linspace(0, 2, 401, dtype=torch.float64)  # angular visual hardness times the number of classes
BANDWIDTH, BANDWIDTH_IMAGES = 5e-3, 50_000  # the paper's: 5e-6 for as many images of 1000 classes


def measure(run: Run, train: Split, test: Split, store: Store, flattened: bool = True) -> Numbers:
    """The numbers of a run; what is compared between runs goes to its file of `kept`.

    `flattened` compares maps value by value, else by their means over positions.
    """
    layers, train_features = _of_training(run, train)
    numbers, grams, test_features = _of_test(run, test, flattened)
    features = {"train": _few(train_features, train.labels), "test": _few(test_features, test.labels)}
    kept = write_kept(store, run.recipe.key, grams, features)
    return {"training_images": len(train), "images": len(test), **kept, **layers, **numbers}


# -- of training images ----------------------------------------------------------------------------------------------


def _of_training(run: Run, split: Split) -> tuple[Numbers, Tensor]:
    """Class separation of each layer, the geometry of the features, and the features (N, d)."""
    separation: dict[str, dict[str, ClassSeparation]] = {}
    features = []
    for batch, labels in _batches(split, activations(run, split)):
        for name, x in batch.layers.items():
            if name not in separation:
                separation[name] = {d: ClassSeparation(run.task.num_classes, d) for d in DISTANCES}
            for by_distance in separation[name].values():
                by_distance.update(x, labels)
        features.append(batch.layers[FEATURES])
    x = torch.cat(features)
    numbers = {
        "layers": list(separation),
        "separation": {d: [float(layer[d].compute()) for layer in separation.values()] for d in DISTANCES},
        **_geometry(run, x, split.labels),
    }
    return numbers, x


def _geometry(run: Run, features: Tensor, labels: Tensor) -> Numbers:
    """Spectra, and distances between images, of features (N, d)."""
    pairs = cosine_distances(features, labels, bins=BINS, samples=PAIRED)
    spectra = {"features": _spectrum(features), "centroids": _spectrum(class_centroids(features, labels))}
    if (weight := _head_weight(run, features)) is not None:
        spectra["head"] = _spectrum(weight)
    return {
        "centered": float(class_separation(features, labels, "centered_cosine")),
        "spectra": spectra,
        "distances": {"samples": pairs.samples, "within": pairs.within, "between": pairs.between},
    }


def _spectrum(x: Tensor) -> Tensor:
    """Singular values around the mean row, relative to the largest."""
    return singular_values(x, centered=True, scaled=True)[:SPECTRUM]


# -- of test images --------------------------------------------------------------------------------------------------


def _of_test(run: Run, split: Split, flattened: bool) -> tuple[Numbers, Grams, Tensor]:
    """Sparsity of each layer, hardness of the images, what is compared between runs, and the features (N, d)."""
    nonzero: dict[str, list[tuple[Tensor, int]]] = {}
    grams: Grams = {}
    features, right = list[Tensor](), list[Tensor]()
    for batch, labels in _batches(split, _with_grams(run, split, gram_matrix if flattened else _pooled_gram)):
        for name, share in batch.nonzero.items():
            nonzero.setdefault(name, []).append((share, len(labels)))
        if len(features) * BATCH < COMPARED:
            for name, gram in batch.layers.items():
                grams.setdefault(name, []).append(gram.cpu())
        assert batch.output.features is not None, "our networks all give features"
        features.append(batch.output.features.float())
        right.append(batch.output.logits.argmax(dim=1) == labels)
    x = torch.cat(features)
    numbers: Numbers = {"nonzero": [_mean(shares) for shares in nonzero.values()]}
    if (weight := _head_weight(run, x)) is not None:
        numbers["hardness"] = _hardness(x, weight, split.labels, torch.cat(right))
    return numbers, grams, x


def _with_grams(run: Run, split: Split, gram: Callable[[Tensor], Tensor]) -> Iterator[Activations]:
    """Activations of all images, with a Gram matrix of each layer for the first `COMPARED`."""
    compared = torch.arange(min(COMPARED, len(split)))
    yield from activations(run, split.take(compared), gram, BATCH)
    if len(split) > len(compared):
        yield from activations(run, split.take(torch.arange(len(compared), len(split))))


def _pooled_gram(x: Tensor) -> Tensor:
    return gram_matrix(pooled(x))


def _hardness(features: Tensor, weight: Tensor, labels: Tensor, right: Tensor) -> Numbers:
    """Angular visual hardness times the number of classes, whether or not each prediction was right (N,)."""
    relative = len(weight) * angular_visual_hardness(features, weight, labels)
    return {
        "mean": float(relative.mean()),
        "right": float(relative[right].mean()),
        "wrong": float(relative[~right].mean()),
        "density": kernel_density(relative, HARDNESS.to(relative.device), bandwidth(len(relative))),
    }


def bandwidth(images: int) -> float:
    """The paper's at its number of images; for fewer wider, by the usual rule of the fifth root.

    >>> bandwidth(50_000), round(bandwidth(500), 4)
    (0.005, 0.0126)
    """
    return BANDWIDTH * max(1.0, BANDWIDTH_IMAGES / images) ** 0.2


# -- both ------------------------------------------------------------------------------------------------------------


def _batches(split: Split, seen: Iterable[Activations]) -> Iterator[tuple[Activations, Tensor]]:
    """Each batch with its labels."""
    start = 0
    for batch in seen:
        stop = start + len(batch.output.logits)
        yield batch, split.labels[start:stop]
        start = stop


def _head_weight(run: Run, features: Tensor) -> Tensor | None:
    """The weights of the classes (C, d); None of a head that has no such ones."""
    weight: Any = getattr(run.evaluated.head, "weight", None)
    fits = isinstance(weight, Tensor) and weight.shape == (run.task.num_classes, features.shape[1])
    return weight if fits else None


def _few(features: Tensor, labels: Tensor) -> Features:
    """`EMBEDDED` of the features (N, d) and their labels (N,): the first of each class, then the second, and so on."""
    rows = (place_in_class(labels) * (1 + labels.max()) + labels).argsort()[:EMBEDDED]
    return Features(features[rows].cpu(), labels[rows].cpu())


def _mean(shares: Iterable[tuple[Tensor, int]]) -> float:
    """Mean over images of shares that were taken of batches."""
    values, sizes = zip(*shares, strict=True)
    return float(np.average([float(v) for v in values], weights=sizes))
