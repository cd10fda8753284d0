"""Stratified splits: a partition, the right shares, decided by the seed."""

import numpy as np
import pytest

from equipoise.data import split_by_class

LABELS = np.array([0] * 40 + [1] * 25 + [2] * 10 + [3])


@pytest.mark.parametrize("share", [0, 0.1, 0.3, 0.9])
def test_split_is_a_stratified_partition(share):
    held, rest = split_by_class(LABELS, 4, share, seed=3)
    for c, n in enumerate((40, 25, 10, 1)):
        members = [i for i, label in enumerate(LABELS) if label == c]
        assert sorted([*held[c], *rest[c]]) == members
        assert len(held[c]) == (max(1, round(share * n)) if share and n > 1 else 0), "one image is trained on"


def test_same_seed_same_split_other_seed_other_split():
    def flat(seed):
        return [part.tolist() for pools in split_by_class(LABELS, 4, 0.3, seed) for part in pools]

    assert flat(0) == flat(0)
    assert flat(0) != flat(1)


def test_pools_are_shuffled():
    _, rest = split_by_class(LABELS, 4, 0, seed=0)
    assert rest[0].tolist() != sorted(rest[0].tolist())
    # each of 40 places holds the mean 19.5 in expectation; over 400 seeds its standard error is 11.5 / 20 = 0.58
    places = np.stack([split_by_class(LABELS, 1, 0, seed)[1][0] for seed in range(400)])
    assert np.abs(places.mean(0) - 19.5).max() < 4 * 0.58


def test_a_class_without_images_has_empty_pools():
    held, rest = split_by_class(LABELS, 5, 0.3, seed=0)
    assert len(held[4]) == len(rest[4]) == 0


def test_the_draw_does_not_change_with_numpy():
    # the order of PCG64(0)'s first uniform numbers .637 .270 .041 .017 .813 .913 .607 .729; fingerprints rest on it
    assert split_by_class(np.zeros(8, int), 1, 0, seed=0)[1][0].tolist() == [3, 2, 1, 6, 0, 7, 4, 5]
