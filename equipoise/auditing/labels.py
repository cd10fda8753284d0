r"""Labels that look wrong: what a classifier says of images that it was not fitted on, class by class.

The classifier is linear discriminant analysis with the same prior for every class: one mean for each class, one
covariance for all. It does not know how many images a class has, and needs few of them.

Probabilities :math:`p_c` of a rare class are lower also where its labels are right. So each is compared with what is
usual for its class, the mean :math:`t_c` of :math:`p_c` over images with that label. An image with label y is suspect
if, for some other class c,

.. math:: p_c / t_c \ge 0.5, \qquad p_y / t_y < 0.1.

Suspects are left out, and all is done once more: wrong labels spoil the mean of a rare class most.

Reference: Northcutt, Jiang, Chuang. Confident Learning: Estimating Uncertainty in Dataset Labels. JAIR 2021, whose
thresholds t are these; the two factors are ours. They were chosen on long-tailed digits and photographs with 5 and 10 %
wrong labels (docs/results/own_images.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

FOLDS = 5
ROUNDS = 2
SHRINK = 0.2  # share of the identity in the covariance
LIKELY, UNLIKELY = 0.5, 0.1
FEWEST = 4  # images of a class whose labels can be judged
MOST_FEATURES = 256
WORTHLESS = 0.5  # balanced accuracy below which nothing is said
CALIBRATED = 10_000  # images that are enough to choose a temperature
TEMPERATURES = torch.logspace(-3, 1, 60, dtype=torch.float64)


@dataclass(frozen=True)
class Suspect:
    """An image (an index), the class that it rather looks like, and how much likelier that is: 1 is sure, 0 a tie."""

    image: int
    looks_like: int
    margin: float


@dataclass(frozen=True)
class Judgement:
    """Suspects, the surest first, and how well the classifier does: its mean recall over classes."""

    suspects: tuple[Suspect, ...]
    accuracy: float

    @property
    def means_something(self) -> bool:
        return self.accuracy >= WORTHLESS

    def of_rows(self, rows: NDArray[np.int64]) -> Judgement:
        """The same where image i of these is image `rows[i]` of all."""
        return replace(self, suspects=tuple(replace(s, image=int(rows[s.image])) for s in self.suspects))


def judge(features: Tensor, labels: Tensor, num_classes: int, together: NDArray[np.int64]) -> Judgement:
    """Suspect labels of images with these features (N, d). Images with one number in `together` are in one fold."""
    x = _reduced(features).double()
    folds = torch.from_numpy(_folds(labels.numpy(), together))
    trusted = torch.ones(len(x), dtype=torch.bool)
    accuracy = 0.0
    for turn in range(ROUNDS):
        p, usual, hit = _probabilities(x, labels, num_classes, folds, trusted)
        accuracy = hit if turn == 0 else accuracy
        relative = p / usual
        own = relative.gather(1, labels[:, None])[:, 0]
        best, looks_like = relative.scatter(1, labels[:, None], -torch.inf).max(1)
        judged = torch.bincount(labels, minlength=num_classes)[labels] >= FEWEST
        suspect = judged & (best >= LIKELY) & (own < UNLIKELY)
        trusted = ~suspect
    rows = suspect.nonzero()[:, 0]
    margin = p[rows, looks_like[rows]] - p[rows, labels[rows]]
    order = margin.argsort(descending=True, stable=True)
    found = zip(rows[order].tolist(), looks_like[rows[order]].tolist(), margin[order].tolist(), strict=True)
    return Judgement(tuple(Suspect(*each) for each in found), accuracy)


def _probabilities(
    x: Tensor, labels: Tensor, num_classes: int, folds: Tensor, trusted: Tensor
) -> tuple[Tensor, Tensor, float]:
    """p (N, C) of images that the classifier was not fitted on, t (C,), and its balanced accuracy."""
    logits = torch.empty(len(x), num_classes, dtype=x.dtype)
    for fold in folds.unique():
        rest, held = (folds != fold) & trusted, folds == fold
        logits[held] = _discriminant(x[rest], labels[rest], x[held], num_classes)
    counts = torch.bincount(labels[trusted], minlength=num_classes)
    p = _calibrated(logits, labels, trusted, 1 / counts.clamp_min(1).double()).softmax(1)
    own = p.gather(1, labels[:, None])[:, 0]
    sums = torch.zeros(num_classes, dtype=x.dtype).index_add_(0, labels[trusted], own[trusted])
    usual = (sums / counts.clamp_min(1)).clamp_min(1e-3)
    right = (logits.argmax(1) == labels).double()
    every = torch.bincount(labels, minlength=num_classes)
    recall = torch.zeros(num_classes, dtype=x.dtype).index_add_(0, labels, right) / every.clamp_min(1)
    return p, usual, float(recall[every > 0].mean())


def _discriminant(x: Tensor, y: Tensor, new: Tensor, num_classes: int) -> Tensor:
    """Logits of `new` with equal priors; −∞ for classes without an image in `x`."""
    counts = torch.bincount(y, minlength=num_classes)
    mean = torch.zeros(num_classes, x.shape[1], dtype=x.dtype).index_add_(0, y, x) / counts.clamp_min(1)[:, None]
    rest = x - mean[y]
    covariance = rest.T @ rest / max(1, len(x) - num_classes)
    size = covariance.trace() / len(covariance)
    covariance = (1 - SHRINK) * covariance + (SHRINK * size + 1e-9) * torch.eye(len(covariance), dtype=x.dtype)
    weight = torch.linalg.solve(covariance, mean.T)
    logits = new @ weight - 0.5 * (mean * weight.T).sum(1)
    return logits.masked_fill(counts == 0, -torch.inf)


def _calibrated(logits: Tensor, labels: Tensor, rows: Tensor, class_weights: Tensor) -> Tensor:
    """The logits times the factor at which they fit the labels of `rows` best, each class counting the same."""
    known = rows & logits.gather(1, labels[:, None])[:, 0].isfinite()
    if not bool(known.any()):
        return logits
    chosen = known.nonzero()[:, 0]
    chosen = chosen[:: 1 + len(chosen) // CALIBRATED]
    z, y = logits[chosen], labels[chosen]
    losses = [(class_weights[y] * cross_entropy(z * t, y, reduction="none")).sum() for t in TEMPERATURES]
    return logits * TEMPERATURES[int(torch.stack(losses).argmin())]


def _reduced(features: Tensor) -> Tensor:
    """At most so many principal components."""
    x = features.float() - features.float().mean(0)
    if x.shape[1] <= MOST_FEATURES:
        return x
    _, axes = torch.linalg.eigh((x.T @ x).double())
    return x @ axes[:, -MOST_FEATURES:].float()


def _folds(labels: NDArray[np.int64], together: NDArray[np.int64]) -> NDArray[np.int64]:
    """A fold for each image: classes are spread evenly over folds, and groups stay whole."""
    rng = np.random.Generator(np.random.PCG64(0))
    _, first, group = np.unique(together, return_index=True, return_inverse=True)
    fold_of_group = np.empty(len(first), np.int64)
    for c in np.unique(labels[first]):
        rows = np.flatnonzero(labels[first] == c)
        fold_of_group[rows[rng.random(len(rows)).argsort()]] = (np.arange(len(rows)) + c) % FOLDS
    return fold_of_group[group.reshape(-1)]


def pixel_features(views: NDArray[np.uint8]) -> Tensor:
    """Brightness in 12 × 12 places and colour in 4 × 4: what serves where no pretrained network is installed."""
    small = torch.from_numpy(views).permute(0, 3, 1, 2)
    parts = []
    for part in small.split(4096):
        pixels = part.float() / 255
        grey = torch.nn.functional.adaptive_avg_pool2d(pixels.mean(1, keepdim=True), 12).flatten(1)
        colour = torch.nn.functional.adaptive_avg_pool2d(pixels - pixels.mean(1, keepdim=True), 4).flatten(1)
        parts.append(torch.cat((grey, colour), dim=1))
    return torch.cat(parts) if parts else torch.empty(0, 144 + 48)
