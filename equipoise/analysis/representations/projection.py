"""Features in two dimensions."""

from __future__ import annotations

import numpy as np


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
