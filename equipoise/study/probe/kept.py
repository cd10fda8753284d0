"""What is kept of a run to be compared with other runs, and to be drawn: analysis/KEY.layers.npz.

Of each layer the Gram matrices of some batches of images: all that CKA needs to know of it, and far less than its maps.
Only their lower triangles are written, in half precision, relative to the layer's size, which CKA does not see.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...core.files import checksum, write_whole
from ...store import Store
from .subjects import FOLDER, Numbers

Grams = dict[str, list[Tensor]]  # layer -> a matrix (n, n) for each batch


class Features(NamedTuple):
    """Features (N, d) and labels (N,) of some images."""

    x: Any
    labels: Any


def kept_file(store: Store, key: str) -> Path:
    return store.path / FOLDER / f"{key}.layers.npz"


def write_kept(store: Store, key: str, grams: Grams, features: Mapping[str, Features]) -> Numbers:
    """Write the file, with features of "train" and "test", and give what the numbers of the run must say of it."""
    arrays = {f"gram {name}": _packed(matrices) for name, matrices in grams.items()}
    size = max(float(part.x.abs().max()) for part in features.values()) or 1.0  # half precision has its limits
    for name, part in features.items():
        arrays |= {f"{name} features": (part.x / size).half().numpy(), f"{name} labels": part.labels.numpy()}
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    write_whole(kept_file(store, key), buffer.getvalue())
    sizes = [len(matrix) for matrix in next(iter(grams.values()))]
    return {"batches": sizes, "kept": sum(sizes), "kept_checksum": checksum(buffer.getvalue())}


def is_kept(store: Store, key: str, numbers: Numbers) -> bool:
    """Whether the file of a run is what was written with these numbers."""
    path = kept_file(store, key)
    return path.is_file() and numbers["kept_checksum"] == checksum(path.read_bytes())


class Kept:
    """The file of a run, of which parts are read as they are asked for."""

    def __init__(self, store: Store, key: str, numbers: Numbers) -> None:
        self.arrays: Mapping[str, np.ndarray] = np.load(kept_file(store, key), allow_pickle=False)
        self.batches: list[int] = numbers["batches"]

    def grams(self, layer: str) -> list[Tensor]:
        """A matrix (n, n) for each batch."""
        triangles = torch.from_numpy(self.arrays[f"gram {layer}"]).double().split([_values(n) for n in self.batches])
        return [_unpacked(values, n) for values, n in zip(triangles, self.batches, strict=True)]

    def features(self, name: str) -> Features:
        """Those of "train" or "test", as arrays."""
        return Features(self.arrays[f"{name} features"].astype(np.float64), self.arrays[f"{name} labels"])


def _values(n: int) -> int:
    return n * (n + 1) // 2


def _packed(matrices: list[Tensor]) -> np.ndarray:
    size = matrices[0].diagonal().mean().clamp_min(1e-30)
    triangles = [matrix[tuple(torch.tril_indices(*matrix.shape))] / size for matrix in matrices]
    return torch.cat(triangles).half().numpy()


def _unpacked(values: Tensor, n: int) -> Tensor:
    matrix, (i, j) = values.new_empty(n, n), torch.tril_indices(n, n)
    matrix[i, j] = matrix[j, i] = values
    return matrix
