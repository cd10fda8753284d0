"""Held-out images by number, and a task that has no test set."""

import pytest
import torch

from equipoise.core import EquipoiseError
from equipoise.data import load_task
from equipoise.train import Recipe, TaskChoice

LONG = {"imbalance": "long_tailed", "ratio": 100}


def counts(split):
    return torch.bincount(split.labels, minlength=10).tolist()


def images(split):
    return {(int(y), x.numpy().tobytes()) for x, y in zip(split.images[:], split.labels, strict=True)}


def test_so_many_images_of_each_class_are_held_out():
    whole, held = load_task("digits", valid=0, **LONG), load_task("digits", valid_per_class=3, **LONG)
    before = counts(whole.train)
    expected = [3 if n > 3 else 0 for n in before]
    assert min(before) <= 3 < max(before), "the test shows nothing"
    assert counts(held.valid) == expected
    assert counts(held.train) == [n - k for n, k in zip(before, expected, strict=True)]
    assert images(held.train) | images(held.valid) == images(whole.train)
    assert len(images(held.train) & images(held.valid)) == 0


def test_they_are_the_same_for_every_ratio_and_others_for_another_seed():
    some, more = (load_task("digits", valid_per_class=2, imbalance="step", ratio=r) for r in (1, 10))
    assert images(some.valid) == images(more.valid) and images(more.train) < images(some.train)
    other = load_task("digits", valid_per_class=2, imbalance="step", ratio=1, seed=1)
    assert images(other.valid) != images(some.valid)


def test_without_a_test_set():
    task = load_task("digits", test=False)
    assert len(task.test) == 0 and task.test.images.shape == (0, 1, 8, 8)
    assert task.fingerprint == load_task("digits").fingerprint


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"valid_per_class": 0}, "at least 1"),
        ({"valid_per_class": 2.5}, "whole number"),
        ({"test": "no"}, "test must be true or false"),
    ],
)
def test_mistakes(wrong, message):
    with pytest.raises(EquipoiseError, match=message):
        TaskChoice(**wrong)


def test_keys_change_only_where_these_are_used():
    recipe = Recipe.make({"model": "cnn_small"}, {"name": "digits"})
    assert recipe.key == "6dd60f48cbf04b0a"  # as before there were these options, and any that came later
    keys = [Recipe.make({"model": "cnn_small"}, {"name": "digits", **o}).key
            for o in ({}, {"valid_per_class": 3}, {"test": False})]  # fmt: skip
    assert len(set(keys)) == 3
