"""How alike the predictions of runs are, beyond their accuracies."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .. import _arrays
from .._kinds import Array, double, either_kind

PART = 2**12  # samples compared at once, which stay in the cache


class Agreement(NamedTuple):
    """Shares of samples: numbers for two runs, (R, R) for all pairs of R.

    `same_top1`: both predict the same class. `both_right_or_wrong`: both are right, or both wrong, whatever they say.
    `same_error`: of the samples that both get wrong, those given the same class; NaN where there are none.
    """

    same_top1: Array
    both_right_or_wrong: Array
    same_error: Array


@either_kind
def agreement(pred_a: Array, pred_b: Array, labels: Array) -> Agreement:
    """The three ways of agreeing of two runs: predicted and true classes (N,).

    >>> agreement([0, 1, 1, 2], [0, 1, 2, 2], labels=[0, 2, 0, 0])
    Agreement(same_top1=0.75, both_right_or_wrong=1.0, same_error=0.6666666666666666)

    Reference: Kornblith, Chen, Lee, Norouzi. Why Do Better Loss Functions Lead to Less Transferable Features? 2021.
    """
    if pred_a.shape != pred_b.shape:
        shapes = f"{tuple(pred_a.shape)} and {tuple(pred_b.shape)}"
        raise ValueError(f"pred_a and pred_b must be of the same samples, not of shapes {shapes}")
    pairs = agreement_matrix(torch.stack([pred_a, pred_b]), labels)
    return Agreement(*(matrix[0, 1] for matrix in pairs))


@either_kind
def agreement_matrix(preds: Array, labels: Array) -> Agreement:
    r"""`agreement` between all pairs of runs: preds (R, N), labels (N,) -> three symmetric matrices (R, R).

    .. math:: \text{same error}_{ab} = \frac{\#\{a = b\} - \#\{a = b = y\}}{\#\{a \ne y, \, b \ne y\}}

    Rights and wrongs of all pairs are two matrix products; equal predictions are counted run by run.

    >>> agreement_matrix([[0, 1, 1], [0, 1, 0], [0, 0, 0]], labels=[0, 1, 0]).same_top1.round(2)
    array([[1.  , 0.67, 0.33],
           [0.67, 1.  , 0.67],
           [0.33, 0.67, 1.  ]])
    """
    p, y = runs_and_labels(preds, labels)
    right = double(p == y)
    both_right, both_wrong = right @ right.T, (1 - right) @ (1 - right).T
    same = double(torch.stack([_equal(part) for part in p.split(PART, dim=1)]).sum(dim=0))
    return Agreement(same / len(y), (both_right + both_wrong) / len(y), (same - both_right) / both_wrong)


def _equal(p: Tensor) -> Tensor:
    """On how many samples each pair of runs (R, n) says the same: (R, R)."""
    return torch.stack([(p == own).sum(dim=1) for own in p])


def runs_and_labels(preds: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Predictions of runs (R, N) and the labels (N,) of the same samples."""
    if preds.dim() != 2 or not preds.numel():
        raise ValueError(f"preds must have shape (runs, N), not {tuple(preds.shape)}")
    y = _arrays.whole_numbers("labels", labels)
    if preds.shape[1] != len(y):
        raise ValueError(f"preds has {preds.shape[1]} samples and labels {len(y)}; both must be of the same samples")
    p = _arrays.whole_numbers("preds", preds.flatten()).reshape(preds.shape)
    low = int(torch.minimum(p.min(), y.min()))
    if low < 0:
        raise ValueError(f"preds and labels must be classes, 0 or more, not {low}")
    return p, y


class Dendrogram(NamedTuple):
    """A tree of R runs. `order` (R,) is that of its leaves, like ones side by side.

    `linkage` (R-1, 4) is scipy's: of each step the two clusters joined, their distance and the runs they hold. To draw
    it, connect the four points (`x`, `height`) of each step, both (R-1, 4): leaf i of `order` stands at x = 10 i + 5.
    """

    linkage: Array
    order: Array
    x: Array
    height: Array


@either_kind
def dendrogram(similarity: Array) -> Dendrogram:
    """Hierarchical clustering of runs by 1 - similarity (R, R): a matrix of `agreement_matrix`, say.

    The distance of two clusters is the mean over their pairs of runs (average linkage; the paper names none), and
    the leaves are put in the order that has neighbours as alike as the tree allows.

    >>> tree = dendrogram([[1.0, 0.2, 0.9], [0.2, 1.0, 0.3], [0.9, 0.3, 1.0]])  # the first and third are alike
    >>> tree.order, tree.linkage[:, 2].round(2)
    (array([1, 2, 0]), array([0.1 , 0.75]))
    """
    from scipy.cluster import hierarchy  # slow to import
    from scipy.spatial.distance import squareform

    s = _checked_similarity(similarity)
    distance = (1 - (s + s.T) / 2).fill_diagonal_(0).clamp(min=0).cpu().numpy()
    linkage = hierarchy.linkage(squareform(distance), method="average", optimal_ordering=True)
    drawn = hierarchy.dendrogram(linkage, no_plot=True)

    def tensor(values: Array) -> Tensor:
        return torch.as_tensor(values, device=s.device)

    order = tensor(drawn["leaves"])
    return Dendrogram(tensor(linkage), order, tensor(drawn["icoord"]).double(), tensor(drawn["dcoord"]).double())


def _checked_similarity(similarity: Tensor) -> Tensor:
    s = double(similarity)
    if s.dim() != 2 or s.shape[0] != s.shape[1] or len(s) < 2:
        raise ValueError(f"similarity must be of all pairs of two runs or more, (R, R), not {tuple(s.shape)}")
    if not bool(torch.isfinite(s).all()):
        raise ValueError("similarity is not known for some pairs (NaN or infinite); leave those runs out")
    if not torch.allclose(s, s.T, atol=1e-6):
        raise ValueError("similarity must be symmetric: of runs a and b the same as of b and a")
    return s
