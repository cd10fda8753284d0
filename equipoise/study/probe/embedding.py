"""Features in two dimensions, for the eye: principal components, or t-SNE of a few images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...store import Store
from ...store.analysis import Embedding, MethodPoints
from .representations import Found
from .subjects import Subject, by_method, layers_file

POINTS = 600  # drawn of each run
MOST_FOR_TSNE = 2000


def embed(store: Store, subjects: Sequence[Subject], found: Found, labels: np.ndarray, tsne: bool) -> Embedding:
    """The features of each method's first run as points (n, 2), with the labels of their images."""
    methods = []
    for name, group in by_method(subjects).items():
        numbers = found[group[0].key]
        columns = np.load(layers_file(store, group[0].key), mmap_mode="r", allow_pickle=False)
        x = np.array(columns[:MOST_FOR_TSNE, -numbers["widths"][-1] :], dtype=np.float64)
        points, share = (_tsne(x), None) if tsne else principal_components(x)
        methods.append(MethodPoints(name, group[0].seed, points[:POINTS].round(4).tolist(), share))
    return Embedding("t-SNE" if tsne else "PCA", labels[:POINTS].tolist(), tuple(methods))


def principal_components(x: np.ndarray) -> tuple[np.ndarray, float]:
    """Scores (N, 2) along the two directions of the largest variance, and the share of the variance they hold.

    >>> points, share = principal_components(np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]]))
    >>> abs(points[:, 0]).round(6).tolist(), round(share, 6)
    ([5.0, 0.0, 5.0], 1.0)
    """
    centred = x - x.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((len(x), 2))
    points[:, : min(2, len(sizes))] = left[:, :2] * sizes[:2]
    whole = (sizes**2).sum()
    return points, float((sizes[:2] ** 2).sum() / whole) if whole > 0 else 1.0


def _tsne(x: np.ndarray) -> np.ndarray:
    from sklearn.manifold import TSNE  # slow to import

    perplexity = min(30.0, (len(x) - 1) / 3)
    points: np.ndarray = TSNE(2, perplexity=perplexity, init="pca", random_state=0).fit_transform(x)
    return points
