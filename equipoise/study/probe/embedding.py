"""Features in two dimensions, for the eye: principal components, or t-SNE, of training and test images together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ...analysis.representations.projection import principal_components
from ...store import Store
from ...store.analysis import Embedding, MethodPoints
from .kept import Kept
from .representations import Found
from .subjects import Subject

POINTS = 300  # drawn of train, and of test


def embed(store: Store, subjects: Sequence[Subject], numbers: Found, tsne: bool) -> Embedding:
    """The features of a run of each method as points (n, 2), with the labels of their images, training first.

    All runs are of one seed, and so of the same images: the seed that most methods have.
    """
    seed = Counter(subject.seed for subject in subjects).most_common(1)[0][0]
    methods: list[MethodPoints] = []
    for subject in subjects:
        if subject.seed == seed:
            kept = Kept(store, subject.key, numbers[subject.key])
            train, test = kept.features("train"), kept.features("test")
            points, share = _in_two_dimensions(np.concatenate([train.x, test.x]), tsne)
            drawn = np.concatenate([points[: len(train.x)][:POINTS], points[len(train.x) :][:POINTS]])
            methods.append(MethodPoints(subject.method, seed, drawn.round(4).tolist(), share))
    labels = (*train.labels[:POINTS].tolist(), *test.labels[:POINTS].tolist())
    return Embedding("t-SNE" if tsne else "PCA", labels, tuple(methods), len(train.labels[:POINTS]))


def _in_two_dimensions(x: np.ndarray, tsne: bool) -> tuple[np.ndarray, float | None]:
    """Points (N, 2), and the share of the variance that they hold, where that means something."""
    if not tsne:
        return principal_components(x)
    from sklearn.manifold import TSNE  # slow to import

    perplexity = min(30.0, (len(x) - 1) / 3)
    return TSNE(2, perplexity=perplexity, init="pca", random_state=0).fit_transform(x), None
