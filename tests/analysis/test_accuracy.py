import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics
from torchmetrics.functional import classification as torchmetrics

from equipoise import analysis

SAMPLES = st.integers(1, 6).flatmap(
    lambda c: st.tuples(
        st.just(c),
        st.lists(st.tuples(st.integers(0, c - 1), st.integers(0, c - 1)), min_size=1, max_size=40),
    )
)


def slow_per_class(pairs, num_classes):
    """Accuracy of each class with loops; None for a class without samples."""
    result = []
    for c in range(num_classes):
        of_class = [p for p, y in pairs if y == c]
        result.append(sum(p == c for p in of_class) / len(of_class) if of_class else None)
    return result


def nan_for_none(values):
    return [math.nan if v is None else v for v in values]


@given(SAMPLES)
def test_accuracies_match_loops(sample):
    c, pairs = sample
    pred, labels = [p for p, _ in pairs], [y for _, y in pairs]
    slow = slow_per_class(pairs, c)
    known = [a for a in slow if a is not None]
    np.testing.assert_allclose(analysis.per_class_accuracy(pred, labels, c), nan_for_none(slow))
    assert analysis.balanced_accuracy(pred, labels, c) == pytest.approx(sum(known) / len(known))
    assert analysis.worst_class_accuracy(pred, labels, c) == min(known)


@given(SAMPLES)
def test_confusion_and_ratio_match_loops(sample):
    c, pairs = sample
    pred, labels = [p for p, _ in pairs], [y for _, y in pairs]
    confusion = [[sum(y == i and p == j for p, y in pairs) for j in range(c)] for i in range(c)]
    ratio = [pred.count(i) / labels.count(i) if i in labels else math.nan for i in range(c)]
    np.testing.assert_array_equal(analysis.confusion_matrix(pred, labels, c), confusion)
    np.testing.assert_allclose(analysis.classification_ratio(pred, labels, c), ratio)


def test_confusion_rows_are_true_classes():
    # three images of class 0, one of them called 1: row 0 is (2, 1)
    assert analysis.confusion_matrix([0, 0, 1], [0, 0, 0], 2).tolist() == [[2, 1], [0, 0]]


def test_top1_and_its_ties():
    logits = [[1.0, 1.0], [0.0, 1.0], [0.0, -1.0]]
    assert analysis.top1(logits, [0, 1, 1]) == pytest.approx(2 / 3)
    assert analysis.top1(logits, [1, 1, 1]) == pytest.approx(1 / 3)  # the tie went to class 0


@given(SAMPLES)
def test_macro_f1_matches_loops(sample):
    c, pairs = sample
    scores = []
    for k in range(c):
        hits, predicted, true = (
            sum(map(f, pairs)) for f in (lambda q, k=k: q == (k, k), lambda q, k=k: q[0] == k, lambda q, k=k: q[1] == k)
        )
        if predicted + true:  # a class that occurs on neither side has no F1
            precision, recall = hits / max(predicted, 1), hits / max(true, 1)
            scores.append(2 * precision * recall / (precision + recall) if hits else 0.0)
    pred, labels = [p for p, _ in pairs], [y for _, y in pairs]
    assert analysis.macro_f1(pred, labels, c) == pytest.approx(sum(scores) / len(scores))


@pytest.mark.parametrize("classes", [2, 7, 30])
def test_the_libraries_people_trust_agree(classes):
    rng = np.random.default_rng(classes)
    # the last class is never true and the one before never predicted
    labels, pred = rng.integers(0, max(classes - 1, 1), 200), rng.integers(0, classes, 200)
    pred[pred == classes - 2] = 0
    y, p = torch.tensor(labels), torch.tensor(pred)
    f1 = analysis.macro_f1(pred, labels, classes)
    assert f1 == pytest.approx(sklearn_metrics.f1_score(labels, pred, average="macro", zero_division=0), abs=1e-12)
    assert f1 == pytest.approx(float(torchmetrics.multiclass_f1_score(p, y, classes, average="macro")), abs=1e-6)
    confusion = analysis.confusion_matrix(p, y, classes)
    assert torch.equal(confusion, torchmetrics.multiclass_confusion_matrix(p, y, classes))
    np.testing.assert_array_equal(confusion, sklearn_metrics.confusion_matrix(labels, pred, labels=range(classes)))
    if classes > 2:
        seen = pred != classes - 1  # scikit-learn warns of a predicted class that is never true
        balanced = analysis.balanced_accuracy(pred[seen], labels[seen], classes)
        assert balanced == pytest.approx(sklearn_metrics.balanced_accuracy_score(labels[seen], pred[seen]), abs=1e-12)


def slow_rank(row, label):
    """Classes in order of falling logit, the lower first where they are equal: the place of the label."""
    return sorted(range(len(row)), key=lambda c: (-row[c], c)).index(label)


@given(st.integers(0, 10_000), st.integers(1, 8))
@settings(max_examples=40)
def test_top_k_matches_sorting(seed, k):
    rng = np.random.default_rng(seed)
    logits, labels = rng.integers(0, 4, (12, 6)).astype(float), rng.integers(0, 6, 12)  # many ties
    expected = np.mean([slow_rank(row.tolist(), y) < k for row, y in zip(logits, labels, strict=True)])
    assert analysis.top_k_accuracy(logits, labels, k) == expected
    assert analysis.top_k_accuracy(logits, labels, 1) == analysis.top1(logits, labels)
    if k >= 6:
        assert expected == 1


def test_top_k_against_torchmetrics():
    torch.manual_seed(1)
    logits, labels = torch.randn(300, 20), torch.randint(0, 20, (300,))
    trusted = torchmetrics.multiclass_accuracy(logits, labels, 20, top_k=5, average="micro")
    assert float(analysis.top_k_accuracy(logits, labels)) == pytest.approx(float(trusted), abs=1e-7)


def test_accuracy_under_a_prior():
    pred, labels = [0, 0, 1, 0, 2, 2], [0, 0, 1, 1, 1, 2]  # accuracies 1, 1/3, 1
    assert analysis.accuracy_under_prior(pred, labels, [0.25, 0.5, 0.25]) == pytest.approx(2 / 3)
    even = analysis.accuracy_under_prior(pred, labels, [1 / 3] * 3)
    assert even == pytest.approx(analysis.balanced_accuracy(pred, labels, 3))
    assert analysis.accuracy_under_prior(pred, labels, [2 / 6, 3 / 6, 1 / 6]) == pytest.approx(4 / 6)  # as in labels
    assert analysis.accuracy_under_prior([0, 1], [0, 0], [1.0, 0.0]) == 0.5  # a class that never comes may be missing


def test_arrays_are_answered_in_their_kind():
    pred, labels, counts = [0, 1, 1, 2], [0, 1, 2, 2], [500, 50, 5]
    calls = {
        "top1": lambda a: analysis.top1(a(np.eye(3)[pred]), a(labels)),
        "per_class": lambda a: analysis.per_class_accuracy(a(pred), a(labels), 3),
        "prior": lambda a: analysis.accuracy_under_prior(a(pred), a(labels), a([0.5, 0.25, 0.25])),
        "worst": lambda a: analysis.worst_class_accuracy(a(pred), a(labels), 3),
        "f1": lambda a: analysis.macro_f1(a(pred), a(labels), 3),
        "confusion": lambda a: analysis.confusion_matrix(a(pred), a(labels), 3),
        "groups": lambda a: analysis.group_accuracy(a(pred), a(labels), a(counts))["few"],
        "masks": lambda a: analysis.frequency_groups(a(counts))["few"],
    }
    for name, call in calls.items():
        array, tensor = call(np.array), call(torch.tensor)
        assert isinstance(tensor, torch.Tensor), name
        assert isinstance(array, np.ndarray if tensor.dim() else float), name
        np.testing.assert_array_equal(tensor.numpy(), array)


def test_tensors_and_half_precision():
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]], dtype=torch.float16)
    assert analysis.top1(logits, torch.tensor([0, 0])) == 0.5
    accuracy = analysis.per_class_accuracy(torch.tensor([0, 1], dtype=torch.int32), torch.tensor([0, 0]), 2)
    np.testing.assert_array_equal(accuracy, [0.5, np.nan])


def slow_groups(counts):
    """The rule of the docstring: limits, or three runs of the classes in order of falling count."""
    named = {"many": [], "medium": [], "few": []}
    for c, n in enumerate(counts):
        named["many" if n > 100 else "few" if n < 20 else "medium"].append(c)
    if all(named.values()):
        return named
    order = sorted(range(len(counts)), key=lambda c: (-counts[c], c))
    if len(order) < 3:
        return {"many": order[:1], "medium": [], "few": order[1:]}
    first = math.ceil(len(order) / 3)
    second = math.ceil((len(order) - first) / 2)
    cuts = order[:first], order[first : first + second], order[first + second :]
    return {name: sorted(cut) for name, cut in zip(named, cuts, strict=True)}


@given(st.lists(st.sampled_from([0, 1, 19, 20, 21, 99, 100, 101, 5000]), min_size=1, max_size=12))
def test_frequency_groups(counts):
    groups = analysis.frequency_groups(counts)
    assert {name: mask.nonzero()[0].tolist() for name, mask in groups.items()} == slow_groups(counts)
    assert (sum(mask.astype(int) for mask in groups.values()) == 1).all()
    if len(counts) >= 3:
        assert all(mask.any() for mask in groups.values())


def test_frequency_groups_at_the_limits():
    groups = analysis.frequency_groups([101, 100, 20, 19])
    assert {name: mask.tolist() for name, mask in groups.items()} == {
        "many": [True, False, False, False],
        "medium": [False, True, True, False],
        "few": [False, False, False, True],
    }


def test_cifar10_long_tailed_falls_back_to_thirds():
    counts = [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]  # no class below 20
    assert [int(mask.sum()) for mask in analysis.frequency_groups(counts).values()] == [4, 3, 3]


def test_group_accuracy_is_the_mean_over_classes():
    # class 0 right 1 of 4, class 1 right 1 of 1: mean of classes 0.625, of samples 0.4
    result = analysis.group_accuracy([0, 2, 2, 2, 1, 3], [0, 0, 0, 0, 1, 2], [500, 400, 50, 5])
    assert result["many"] == 0.625
    assert result["medium"] == 0.0
    assert math.isnan(result["few"])  # class 3 is not among the labels


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: analysis.top1([[0.0, math.nan]], [0]), "not finite in 1 of 1 rows"),
        (lambda: analysis.top1([[0.0, math.inf]], [0]), "not finite"),
        (lambda: analysis.top1([[0.0, 1.0]], [0, 1]), "1 rows of logits and 2 labels"),
        (lambda: analysis.top1([0.0, 1.0], [0]), r"shape \(N, C\)"),
        (lambda: analysis.top1([[0.0, 1.0]], [2]), "has class 2"),
        (lambda: analysis.per_class_accuracy([0, 1], [0], 2), "pred has 2 samples and labels 1"),
        (lambda: analysis.per_class_accuracy([-1], [0], 2), "pred has class -1"),
        (lambda: analysis.per_class_accuracy([0.0], [0], 2), "whole numbers"),
        (lambda: analysis.per_class_accuracy([], [], 2), "one class index for each sample"),
        (lambda: analysis.top_k_accuracy([[0.0, 1.0]], [0], k=0), "k must be a whole number, at least 1"),
        (lambda: analysis.macro_f1([0, 3], [0, 1], 3), "pred has class 3"),
        (lambda: analysis.accuracy_under_prior([0], [0], [0.5, 0.4]), "sum to 1"),
        (lambda: analysis.accuracy_under_prior([0], [0], [1.5, -0.5]), "0 or more"),
        (lambda: analysis.accuracy_under_prior([0], [0], [math.nan, 1.0]), "0 or more"),
        (lambda: analysis.accuracy_under_prior([0], [0], [[1.0]]), "one share for each class"),
        (lambda: analysis.accuracy_under_prior([0], [0], [0.5, 0.5]), r"prior expects class \[1\]"),
        (lambda: analysis.frequency_groups([]), "one number for each class"),
        (lambda: analysis.frequency_groups([1.5, 2]), "whole numbers of images"),
        (lambda: analysis.frequency_groups([-1, 2]), "whole numbers of images"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
