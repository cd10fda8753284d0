"""Batches that a procedure draws beside the run's own."""

import math

import numpy as np
import torch

from equipoise.data import Split
from equipoise.train.procedures._pool import Pool


def test_a_pool_draws_classes_by_their_shares_and_images_of_a_class_alike():
    labels = torch.tensor([3, 0, 0, 1, 1, 1, 1, 3])  # no image of class 2 or 4
    pool = Pool(Split(torch.zeros(8, 1, 1, 1, dtype=torch.uint8), labels), torch.tensor([0.1, 0.4, 5.0, 0.5, 9.0]))
    index, target = pool.indices(40_000, torch.Generator().manual_seed(0))
    assert torch.equal(labels[index], target)
    seen = np.bincount(index, minlength=8) / 40_000
    expected = np.array([0.5 / 2, 0.1 / 2, 0.1 / 2, *[0.4 / 4] * 4, 0.5 / 2])
    np.testing.assert_allclose(seen, expected, atol=5 * math.sqrt(0.25 / 40_000))
    again, _ = pool.indices(40_000, torch.Generator().manual_seed(0))
    other, _ = pool.indices(40_000, torch.Generator().manual_seed(1))
    assert torch.equal(index, again) and not torch.equal(index, other)


def test_a_further_batch_leaves_the_runs_own_stream_alone(make_run):
    run = make_run("bbn", augment="crop_flip(pad=1)")
    before = run.streams["augment"].get_state()
    batch = run.procedure.pool.draw(run, 7)
    assert batch.inputs.shape == (7, 1, 8, 8) and batch.target.shape == (7,)
    assert torch.equal(run.streams["augment"].get_state(), before)
