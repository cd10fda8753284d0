"""Runs that vote: the most common prediction, within one method and across two."""

from __future__ import annotations

from typing import Any

import torch

from .._kinds import Array, double, either_kind
from .similarity import runs_and_labels


@either_kind
def modal_prediction(preds: Array) -> Any:
    """The class that most runs predict, for each sample: preds (R, N) -> (N,).

    Of classes with equally many votes it is the one whose first voter comes first among the runs. (The lowest class,
    as is usual, would favour the frequent ones where classes are in order of frequency.)

    >>> modal_prediction([[2, 0], [1, 0], [1, 3], [2, 3]])
    array([2, 0])

    Reference: Kornblith, Chen, Lee, Norouzi. Why Do Better Loss Functions Lead to Less Transferable Features? 2021.
    """
    if preds.dim() != 2 or not preds.numel():
        raise ValueError(f"preds must have shape (runs, N), not {tuple(preds.shape)}")
    votes = torch.stack([(preds == own).sum(dim=0) for own in preds])  # for what each run says, (R, N)
    return preds.gather(0, votes.argmax(dim=0, keepdim=True)).squeeze(0)


@either_kind
def ensemble_accuracy(preds: Array, labels: Array) -> Any:
    """Accuracy of the `modal_prediction` of all runs: preds (R, N), labels (N,).

    >>> ensemble_accuracy([[0, 1, 1], [0, 0, 1], [1, 1, 1]], labels=[0, 1, 0])
    0.6666666666666666
    """
    p, y = runs_and_labels(preds, labels)
    return double(modal_prediction(p) == y).mean()


@either_kind
def ensemble_matrix(preds: Array, labels: Array) -> Any:
    """Accuracy of ensembles of which half the runs are of method a and half of b: preds (M, R, N) -> (M, M).

    Every ensemble has R voters, on the diagonal all runs of one method. Two methods are combined in both ways, the
    first half of the runs (rounded up) of one with the rest of the other, and the two accuracies averaged: every run
    votes, and where runs are paired by seed no seed votes twice. An odd run is not left out, because ensembles of
    R - 1 voters could not be compared with all R runs of one method.

    >>> always_0, always_1 = [[0, 0, 0]] * 2, [[1, 1, 1]] * 2
    >>> ensemble_matrix([always_0, always_1], labels=[0, 0, 1]).round(3)
    array([[0.667, 0.5  ],
           [0.5  , 0.333]])
    """
    if preds.dim() != 3 or preds.shape[1] < 2:
        raise ValueError(f"preds must have shape (methods, runs, N) with two runs or more, not {tuple(preds.shape)}")
    methods, runs = preds.shape[:2]
    p, y = runs_and_labels(preds.flatten(0, 1), labels)
    first, second = p.reshape(methods, runs, -1).split([runs - runs // 2, runs // 2], dim=1)
    pairs = [torch.cat([a, b]) for a in first for b in second]
    accuracy = torch.stack([ensemble_accuracy(pair, y) for pair in pairs]).reshape(methods, methods)
    return (accuracy + accuracy.T) / 2
