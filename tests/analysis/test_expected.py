"""The interval for new images, against its formula and against draws of new images."""

import numpy as np
import pytest

from equipoise.analysis.statistics.expected import expected_balanced_accuracy


def test_by_the_formula():
    """Two classes of 4 and 2 test images, two trainings."""
    right = np.array([[1, 1, 1, 0, 0, 1], [1, 0, 1, 0, 0, 0]], bool)
    labels = np.array([0, 0, 0, 0, 1, 1])
    found = expected_balanced_accuracy(right, labels, np.arange(6))
    scores = [(3 / 4 + 1 / 2) / 2, (2 / 4 + 0) / 2]
    between = (scores[0] - scores[1]) ** 2 / 2
    first, second = (4 * 5 / 8 + 2) / 8, (2 * 1 / 4 + 2) / 6
    half = 1.959964 * ((first * (1 - first) / 4 + second * (1 - second) / 2) / 4 + between) ** 0.5
    mean = sum(scores) / 2
    assert found == pytest.approx((mean, max(0, mean - half), min(1, mean + half)))


def test_images_of_a_group_count_as_one():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 30)
    once = rng.random((1, 60)) < 0.7
    alone = expected_balanced_accuracy(once, labels, np.arange(60))
    thrice = expected_balanced_accuracy(*(np.repeat(each, 3, -1) for each in (once, labels, np.arange(60))))
    assert thrice == pytest.approx(alone)


def test_the_true_value_is_inside_as_often_as_was_said():
    rng = np.random.default_rng(0)
    recalls, sizes = np.array([0.95, 0.8, 0.6, 0.5]), np.array([200, 60, 20, 8])
    labels = np.repeat(np.arange(4), sizes)
    inside = 0
    for _ in range(400):
        right = rng.random((1, len(labels))) < recalls[labels]
        _, low, high = expected_balanced_accuracy(right, labels, np.arange(len(labels)))
        inside += low <= recalls.mean() <= high
    assert 0.92 <= inside / 400 <= 0.98
