from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.analysis import ensemble_accuracy, ensemble_matrix, modal_prediction


def slow_mode(votes):
    """Most votes, then the earliest voter."""
    counts = Counter(votes)
    return max(votes, key=lambda c: (counts[c], -votes.index(c)))


@given(st.integers(0, 10_000), st.integers(1, 7), st.integers(1, 5))
@settings(max_examples=50)
def test_mode_against_counting(seed, runs, classes):
    preds = np.random.default_rng(seed).integers(0, classes, (runs, 12))
    assert modal_prediction(preds).tolist() == [slow_mode(column) for column in preds.T.tolist()]


def test_ties_do_not_favour_the_lower_class():
    assert modal_prediction([[3], [0]]).tolist() == [3]
    assert modal_prediction([[0], [3]]).tolist() == [0]
    assert modal_prediction([[3], [0], [0]]).tolist() == [0]
    assert modal_prediction([[5, 1]]).tolist() == [5, 1]  # one run


def test_accuracy_within_and_across_methods_against_loops():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 50)
    preds = np.where(rng.random((2, 5, 50)) < 0.5, labels, rng.integers(0, 3, (2, 5, 50)))

    def accuracy(*runs):
        return np.mean([slow_mode(list(votes)) == y for *votes, y in zip(*runs, labels.tolist(), strict=True)])

    a, b = preds.tolist()
    matrix = ensemble_matrix(preds, labels)  # the fifth run, an odd one, votes with the first half
    across = (accuracy(*a[:3], *b[3:]) + accuracy(*b[:3], *a[3:])) / 2
    np.testing.assert_allclose(matrix, [[accuracy(*a), across], [across, accuracy(*b)]])
    assert ensemble_accuracy(preds[0], labels) == pytest.approx(accuracy(*a))


def test_votes_help_runs_that_err_apart():
    # each run errs on another of three samples: alone 2/3, together 1
    preds, labels = [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [0, 0, 0]
    assert ensemble_accuracy(preds, labels) == 1.0
    assert ensemble_accuracy(preds[:1], labels) == pytest.approx(2 / 3)


def test_arrays_are_answered_in_their_kind():
    preds, labels = torch.randint(0, 3, (2, 4, 9)), torch.randint(0, 3, (9,))
    assert isinstance(modal_prediction(preds[0]), torch.Tensor)
    assert isinstance(ensemble_matrix(preds, labels), torch.Tensor)
    assert isinstance(modal_prediction(preds[0].numpy()), np.ndarray)
    assert type(ensemble_accuracy(preds[0].numpy(), labels.numpy())) is float


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: modal_prediction([0, 1]), r"shape \(runs, N\)"),
        (lambda: ensemble_accuracy([[0, 1]], [0]), "preds has 2 samples and labels 1"),
        (lambda: ensemble_matrix([[0, 1]], [0, 1]), r"shape \(methods, runs, N\)"),
        (lambda: ensemble_matrix([[[0, 1]]], [0, 1]), "two runs or more"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
