import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster import hierarchy
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from equipoise import analysis
from equipoise.analysis.representations import similarity


def slow_agreement(a, b, labels):
    n = len(labels)
    shared_errors = [(p, q) for p, q, y in zip(a, b, labels, strict=True) if p != y and q != y]
    return (
        sum(p == q for p, q in zip(a, b, strict=True)) / n,
        sum((p == y) == (q == y) for p, q, y in zip(a, b, labels, strict=True)) / n,
        sum(p == q for p, q in shared_errors) / len(shared_errors) if shared_errors else math.nan,
    )


def predictions(seed, runs=5, n=40, classes=4):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, n)
    return np.where(rng.random((runs, n)) < 0.6, labels, rng.integers(0, classes, (runs, n))), labels


@pytest.mark.parametrize("seed", range(3))
def test_all_pairs_against_loops(seed, monkeypatch):
    monkeypatch.setattr(similarity, "PART", 16)  # 40 samples are three parts
    preds, labels = predictions(seed)
    matrices = analysis.agreement_matrix(preds, labels)
    for a in range(5):
        for b in range(5):
            slow = slow_agreement(preds[a].tolist(), preds[b].tolist(), labels.tolist())
            np.testing.assert_allclose([m[a, b] for m in matrices], slow, rtol=1e-14)
            np.testing.assert_allclose(analysis.agreement(preds[a], preds[b], labels), slow, rtol=1e-14)


def test_by_hand():
    #                             both right, shared error alike, shared error unlike, one right
    found = analysis.agreement([0, 1, 1, 2], [0, 1, 2, 0], labels=[0, 2, 0, 0])
    assert found == (0.5, 0.75, 0.5)
    assert found.same_top1 == 0.5


def test_runs_without_shared_errors():
    found = analysis.agreement([0, 1], [0, 0], labels=[0, 1])
    assert found[:2] == (0.5, 0.5)
    assert math.isnan(found.same_error)
    assert analysis.agreement([0], [0], [0])[:2] == (1.0, 1.0)  # one sample


@given(st.integers(0, 10_000))
@settings(max_examples=30)
def test_bounds_symmetry_and_names_of_classes(seed):
    preds, labels = predictions(seed, n=15)
    matrices = analysis.agreement_matrix(preds, labels)
    renamed = np.random.default_rng(seed).permutation(4)
    for matrix, other in zip(matrices, analysis.agreement_matrix(renamed[preds], renamed[labels]), strict=True):
        known = matrix[~np.isnan(matrix)]
        assert ((known >= 0) & (known <= 1)).all()
        np.testing.assert_array_equal(matrix, matrix.T)
        np.testing.assert_allclose(matrix, other)
    assert (np.diag(matrices.same_top1) == 1).all()
    assert (matrices.same_top1 <= matrices.both_right_or_wrong + 1e-12).all()


def test_tree_is_scipys():
    preds, labels = predictions(1, runs=6)
    same = analysis.agreement_matrix(preds, labels).same_top1
    tree = analysis.dendrogram(same)
    condensed = (1 - same)[np.triu_indices(6, 1)]
    expected = hierarchy.linkage(condensed, "average")
    np.testing.assert_allclose(tree.linkage[:, 2:], expected[:, 2:])  # merges; the order within them is free
    np.testing.assert_allclose(hierarchy.cophenet(tree.linkage), hierarchy.cophenet(expected))
    assert sorted(tree.order.tolist()) == list(range(6))
    np.testing.assert_allclose(np.sort(tree.height[:, 1]), tree.linkage[:, 2])


def test_tree_by_hand():
    # 0 and 2 are alike (distance 0.1); 1 is 0.8 from 0 and 0.7 from 2: joined at their mean, next to 2
    tree = analysis.dendrogram([[1.0, 0.2, 0.9], [0.2, 1.0, 0.3], [0.9, 0.3, 1.0]])
    np.testing.assert_allclose(tree.linkage, [[2, 0, 0.1, 2], [1, 3, 0.75, 3]])
    assert tree.order.tolist() == [1, 2, 0]
    np.testing.assert_allclose(tree.x, [[15, 15, 25, 25], [5, 5, 20, 20]])
    np.testing.assert_allclose(tree.height, [[0, 0.1, 0.1, 0], [0, 0.75, 0.75, 0.1]])


def test_runs_of_one_method_cluster():
    """Digits: linear models and naive Bayes, each on three random halves of the training images."""
    images, labels = load_digits(return_X_y=True)
    halves = [np.random.default_rng(seed).permutation(1000)[:500] for seed in range(3)]
    makers = [lambda: LogisticRegression(C=1e-4, max_iter=300), GaussianNB]
    fitted = [make().fit(images[half], labels[half]) for make in makers for half in halves]
    preds = np.stack([model.predict(images[1000:]) for model in fitted])
    tree = analysis.dendrogram(analysis.agreement_matrix(preds, labels[1000:]).same_top1)
    assert {frozenset(tree.order[:3].tolist()), frozenset(tree.order[3:].tolist())} == {
        frozenset({0, 1, 2}),
        frozenset({3, 4, 5}),
    }


def test_arrays_are_answered_in_their_kind():
    preds, labels = (torch.tensor(x) for x in predictions(0))
    matrices = analysis.agreement_matrix(preds, labels)
    tree = analysis.dendrogram(matrices.same_top1)
    assert all(isinstance(x, torch.Tensor) for x in (*matrices, *tree, *analysis.agreement(preds[0], preds[1], labels)))
    assert all(isinstance(x, np.ndarray) for x in analysis.agreement_matrix(preds.numpy(), labels.numpy()))
    assert type(analysis.agreement([0], [1], [0]).same_top1) is float


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: analysis.agreement([0, 1], [0], [0, 1]), r"not of shapes \(2,\) and \(1,\)"),
        (lambda: analysis.agreement([0, 1], [0, 1], [0]), "preds has 2 samples and labels 1"),
        (lambda: analysis.agreement_matrix([0, 1], [0, 1]), r"shape \(runs, N\)"),
        (lambda: analysis.agreement_matrix([[0.5, 1]], [0, 1]), "preds must be whole numbers"),
        (lambda: analysis.agreement_matrix([[0, -1]], [0, 1]), "0 or more, not -1"),
        (lambda: analysis.agreement_matrix(np.empty((2, 0), int), np.empty(0, int)), r"shape \(runs, N\)"),
        (lambda: analysis.dendrogram([[1.0]]), "two runs or more"),
        (lambda: analysis.dendrogram([[1.0, 0.5, 0.1]]), "all pairs"),
        (lambda: analysis.dendrogram([[1.0, math.nan], [math.nan, 1.0]]), "not known for some pairs"),
        (lambda: analysis.dendrogram([[1.0, 0.5], [0.2, 1.0]]), "symmetric"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
