r"""What balanced accuracy to expect of a network on new images of the same kind.

Two things are left to chance: which images were tested, and which of the trainings the network comes from. With C
classes, recalls :math:`p_c` on :math:`n_c` independent groups of test images, and the variance :math:`s^2` of the score
between trainings,

.. math:: \mathrm{var} = \frac{1}{C^2} \sum_c \frac{\tilde p_c (1 - \tilde p_c)}{n_c} + s^2,
          \qquad \tilde p_c = \frac{n_c p_c + 2}{n_c + 4},

where the two successes and two failures that are added keep a class of few images, all right or all wrong, from
looking certain. Images of one group count as one, as if the network were right of all or of none.

Reference: Agresti, Coull. Approximate is Better than "Exact" for Interval Estimation of Binomial Proportions. The
American Statistician 1998.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

NORMAL = 1.959964  # half a 95 % interval in standard deviations


class Expected(NamedTuple):
    """A mean over trainings, and the 95 % interval for one network on new images."""

    mean: float
    low: float
    high: float


def expected_balanced_accuracy(
    right: NDArray[np.bool_], labels: NDArray[np.int64], groups: NDArray[np.int64]
) -> Expected:
    """From which test images (trainings, N) were classified right, their labels (N,) and the groups (N,) they are in.

    A class without a test image does not count.
    """
    classes = np.unique(labels)
    recalls = np.stack([right[:, labels == c].mean(1) for c in classes], axis=1)  # (trainings, C)
    sizes = np.array([len(np.unique(groups[labels == c])) for c in classes])
    smooth = (sizes * recalls.mean(0) + 2) / (sizes + 4)
    of_images = (smooth * (1 - smooth) / sizes).sum() / len(classes) ** 2
    scores = recalls.mean(1)
    of_trainings = scores.var(ddof=1) if len(scores) > 1 else 0.0
    mean, half = float(scores.mean()), NORMAL * float(np.sqrt(of_images + of_trainings))
    return Expected(mean, max(0.0, mean - half), min(1.0, mean + half))
