"""One run's representation of test images in numbers, layer by layer."""

from __future__ import annotations

import io
from collections.abc import Iterable
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
    kernel_density,
    singular_values,
)
from ...core.files import checksum, write_whole
from ...data import Split
from ...store import Store
from ...train import Run
from ...train.layers import FEATURES, Activations, activations
from .subjects import Numbers, layers_file

KEPT = 2000  # images whose activations are kept on disk, for comparisons between runs
PAIRED = 2000  # images between which all distances are taken
BINS = 80
SPECTRUM = 256  # singular values kept at most
DISTANCES = ("cosine", "euclidean")
HARDNESS = torch.linspace(0, 2, BINS + 1, dtype=torch.float64)  # angular visual hardness times the number of classes
BANDWIDTH = 0.03


def measure(run: Run, split: Split, store: Store) -> Numbers:
    """Class separation and sparsity of each layer, and the geometry of the features that feed the head.

    The pooled activations of the first `KEPT` images go to `layers_file`.
    """
    seen = Seen(run.task.num_classes)
    start = 0
    for batch in activations(run, split):
        stop = start + len(batch.output.logits)
        seen.add(batch, split.labels[start:stop])
        start = stop
    columns = torch.cat([torch.cat(rows)[:KEPT] for rows in seen.kept.values()], dim=1).half()
    buffer = io.BytesIO()
    np.save(buffer, columns.numpy(), allow_pickle=False)
    write_whole(layers_file(store, run.recipe.key), buffer.getvalue())
    kept = {"kept": len(columns), "kept_checksum": checksum(buffer.getvalue())}
    features, right = torch.cat(seen.features), torch.cat(seen.right)
    return {"images": start, **kept, **seen.numbers(), **geometry(run, features, split.labels, right)}


def activations_kept(store: Store, key: str, found: Numbers) -> bool:
    """Whether the activations that `measure` kept are what it wrote; of those of an earlier version nobody knows."""
    path = layers_file(store, key)
    return path.is_file() and found.get("kept_checksum") in (None, checksum(path.read_bytes()))


class Seen:
    """What is summed up while batches go by."""

    def __init__(self, num_classes: int) -> None:
        self.num_classes = num_classes
        self.separation: dict[str, dict[str, ClassSeparation]] = {}
        self.nonzero: dict[str, list[tuple[Tensor, int]]] = {}
        self.kept: dict[str, list[Tensor]] = {}
        self.sizes: dict[str, Tensor] = {}
        self.features: list[Tensor] = []
        self.right: list[Tensor] = []
        self.images = 0

    def add(self, batch: Activations, labels: Tensor) -> None:
        for name, x in batch.pooled.items():
            if name not in self.separation:
                self.separation[name] = {d: ClassSeparation(self.num_classes, d) for d in DISTANCES}
            for separation in self.separation[name].values():
                separation.update(x, labels)
            self.nonzero.setdefault(name, []).append((batch.nonzero[name], len(x)))
            self.kept.setdefault(name, [])
            if self.images < KEPT:
                self.kept[name].append((x / self._size(name, x)).cpu())
        self.images += len(labels)
        self.features.append(batch.pooled[FEATURES])
        self.right.append(batch.output.logits.argmax(dim=1) == labels)

    def _size(self, name: str, x: Tensor) -> Tensor:
        """A layer's scale, by its first batch: of no concern to what is compared, and half precision has its limits."""
        return self.sizes.setdefault(name, x.square().mean().sqrt().clamp_min(1e-12))

    def numbers(self) -> Numbers:
        return {
            "layers": list(self.separation),
            "widths": [rows[0].shape[1] for rows in self.kept.values()],
            "separation": {d: [float(layer[d].compute()) for layer in self.separation.values()] for d in DISTANCES},
            "nonzero": [_mean(shares) for shares in self.nonzero.values()],
        }


def geometry(run: Run, features: Tensor, labels: Tensor, right: Tensor) -> Numbers:
    """What is taken of the features alone: (N, d), (N,), and whether each prediction was right (N,)."""
    spectra = {"features": _spectrum(features), "centroids": _spectrum(class_centroids(features, labels))}
    found: Numbers = {"centered": float(class_separation(features, labels, "centered_cosine")), "spectra": spectra}
    pairs = cosine_distances(features, labels, bins=BINS, samples=PAIRED)
    found["distances"] = {"samples": pairs.samples, "within": pairs.within, "between": pairs.between}
    weight: Any = getattr(run.evaluated.head, "weight", None)
    if isinstance(weight, Tensor) and weight.shape == (run.task.num_classes, features.shape[1]):
        spectra["head"] = _spectrum(weight)
        relative = run.task.num_classes * angular_visual_hardness(features, weight, labels)
        found["hardness"] = {
            "mean": float(relative.mean()),
            "right": float(relative[right].mean()),
            "wrong": float(relative[~right].mean()),
            "density": kernel_density(relative, HARDNESS.to(relative.device), BANDWIDTH),
        }
    return found


def _spectrum(x: Tensor) -> Tensor:
    """Singular values around the mean row, relative to the largest."""
    return singular_values(x, centered=True, scaled=True)[:SPECTRUM]


def _mean(shares: Iterable[tuple[Tensor, int]]) -> float:
    """Mean over images of shares that were taken of batches."""
    values, sizes = zip(*shares, strict=True)
    return float(np.average([float(v) for v in values], weights=sizes))
