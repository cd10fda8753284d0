"""Features in two dimensions, for the eye: principal components, or t-SNE of a few images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...analysis.representations.projection import principal_components
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


def _tsne(x: np.ndarray) -> np.ndarray:
    from sklearn.manifold import TSNE  # slow to import

    perplexity = min(30.0, (len(x) - 1) / 3)
    points: np.ndarray = TSNE(2, perplexity=perplexity, init="pca", random_state=0).fit_transform(x)
    return points
