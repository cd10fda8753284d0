"""Images that are drawn, and means over seeds."""

import math

import pytest
import torch

from equipoise.data import Split, load_task
from equipoise.study.probe.subjects import Subject, drawn, drawn_by_class, few_of, over_seeds


def test_no_class_gets_lost_when_training_images_are_drawn():
    labels = torch.tensor([0] * 600 + [1] * 60 + [2] * 3 + [3])
    split = Split(torch.arange(664, dtype=torch.int32).view(-1, 1, 1, 1), labels)
    few = drawn_by_class(split, 66)
    assert torch.bincount(few.labels).tolist() == [60, 6, 2, 1]
    assert torch.equal(few.labels, labels[few.images.flatten().long()]) and len(few.images.unique()) == 69
    assert len(drawn_by_class(split, 1000)) == 664


def test_means_over_seeds_and_draws():
    e = over_seeds([1.0, None, 3.0])
    assert (e.n, e.mean) == (2, 2.0) and e.high == pytest.approx(2 + 12.7062)
    assert math.isnan(over_seeds([]).mean)
    subjects = [Subject(m, s, type("R", (), {"key": f"{m}{s}"})()) for m in "ab" for s in range(5)]
    assert few_of(subjects, 4) == [0, 1, 5, 6] and few_of(subjects, 1) == [0, 5]
    split = load_task("digits").test
    assert drawn(split, 10).labels.tolist() == drawn(split, 30).labels[:10].tolist()
    assert len(drawn(split, 10_000)) == len(split)
