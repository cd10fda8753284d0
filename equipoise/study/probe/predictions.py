"""How alike the runs of a study predict: all pairs of runs, pairs of methods, and runs that vote."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ...analysis import agreement_matrix, dendrogram, ensemble_matrix, modal_prediction
from ...store import Store
from ...store.analysis import Ensembles, Matrix, Predictions, Tree
from .subjects import Subject, by_method, few_of

DRAWN = 60  # runs whose every pair is written down and drawn
VOTERS = 3  # at least


def compare_predictions(store: Store, subjects: Sequence[Subject]) -> Predictions | None:
    """Agreement of the stored predictions on the whole test set; None with fewer than two runs to compare."""
    predicted, labels = _predictions(store, subjects)
    if len(predicted) < 2:
        return None
    kept, preds = [s for s, _ in predicted], np.stack([p for _, p in predicted])
    matrices = agreement_matrix(preds, labels)._asdict()
    few = few_of(kept, DRAWN)
    pairs = {name: matrix[np.ix_(few, few)] for name, matrix in matrices.items()}
    order, tree = tree_of(pairs["same_top1"])
    return Predictions(
        images=len(labels),
        runs=tuple(kept[i].named for i in few),
        same_top1=pairs["same_top1"].tolist(),
        both_right_or_wrong=pairs["both_right_or_wrong"].tolist(),
        same_error=pairs["same_error"].tolist(),
        order=order,
        tree=tree,
        methods=tuple(by_method(kept)),
        between={name: between_methods(kept, matrix) for name, matrix in matrices.items()},
        ensembles=_ensembles(kept, preds, labels),
    )


def tree_of(similarity: np.ndarray) -> tuple[tuple[int, ...], Tree]:
    """The order in which like runs stand side by side, and the tree that says so as it is drawn."""
    known = np.where(np.isfinite(similarity), similarity, 0.0)
    drawn = dendrogram(known)
    return tuple(drawn.order.tolist()), Tree(drawn.x.tolist(), drawn.height.tolist())


def between_methods(subjects: Sequence[Subject], matrix: np.ndarray) -> Matrix:
    """Means (M, M) over pairs of runs of two methods; on the diagonal, of two runs of one method.

    Runs of one seed start from the same weights and see the same images, which makes them more alike than their methods
    are. So only pairs of unlike seeds count, where there are any.
    """
    places = [[i for i, s in enumerate(subjects) if s.method == method] for method in by_method(subjects)]
    return tuple(tuple(_mean(subjects, matrix, rows, columns) for columns in places) for rows in places)


def _mean(subjects: Sequence[Subject], matrix: np.ndarray, rows: list[int], columns: list[int]) -> float:
    pairs = [(i, j) for i, j in itertools.product(rows, columns) if i != j]
    unlike = [(i, j) for i, j in pairs if subjects[i].seed != subjects[j].seed]
    values = [matrix[i, j] for i, j in unlike or pairs]
    return float(np.nanmean(values)) if values and not np.isnan(values).all() else float("nan")


def test_accuracies(store: Store, subjects: Sequence[Subject]) -> dict[str, float]:
    """The accuracy of each run on its test set, by its key."""
    tests = ((s.key, store.open_test(s.key)) for s in subjects)
    return {key: float((test["logits"].argmax(axis=1) == test["labels"]).mean()) for key, test in tests}


def _predictions(store: Store, subjects: Sequence[Subject]) -> tuple[list[tuple[Subject, np.ndarray]], np.ndarray]:
    """Predicted classes (N,) of those runs that have the test samples of the first."""
    predicted: list[tuple[Subject, np.ndarray]] = []
    labels = np.empty(0, dtype=np.int64)
    for subject in subjects:
        test = store.open_test(subject.key)
        if not predicted:
            labels = test["labels"]
        if np.array_equal(test["labels"], labels) and np.isfinite(test["logits"]).all():
            predicted.append((subject, test["logits"].argmax(axis=1)))
    return predicted, labels


def _ensembles(subjects: Sequence[Subject], preds: np.ndarray, labels: np.ndarray) -> Ensembles | None:
    """Ensembles of the seeds that all methods have; None with fewer than three, of which no two can outvote one."""
    groups = by_method(subjects)
    seeds = sorted(set.intersection(*({s.seed for s in group} for group in groups.values())))
    if len(seeds) < VOTERS:
        return None
    place = {(s.method, s.seed): i for i, s in enumerate(subjects)}
    voters = np.stack([[preds[place[method, seed]] for seed in seeds] for method in groups])
    votes = np.stack([modal_prediction(own) for own in voters])
    agreement: Matrix = agreement_matrix(votes, labels).same_top1.tolist() if len(votes) > 1 else ()
    return Ensembles(
        voters=len(seeds),
        methods=tuple(groups),
        accuracy=ensemble_matrix(voters, labels).tolist(),
        alone=(voters == labels).mean(axis=(1, 2)).tolist(),
        agreement=agreement,
    )
