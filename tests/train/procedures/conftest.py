"""What the tests of procedures share: a small run, a batch of it, and cross-entropies in float64."""

import numpy as np
import pytest
import torch

from equipoise.core import Batch
from equipoise.data import load_task
from equipoise.train import Recipe, Run

TASK = {"name": "digits", "imbalance": "long_tailed", "ratio": 20}


@pytest.fixture
def make_run():
    def make(procedure, **options):
        recipe = Recipe.make({"procedure": procedure, "model": "cnn_small(width=4)", "epochs": 4} | options, TASK)
        run = Run(recipe, load_task(**recipe.task.__dict__), torch.device("cpu"))
        run.order = run.sampler.order(run.streams["order"])
        run.lr.fill_(0.1)
        return run

    return make


@pytest.fixture
def first_batch():
    def batch(run, n=32):
        index = run.order[:n]
        return Batch(run.inputs(run.task.train.images[index]), run.task.train.labels[index])

    return batch


@pytest.fixture
def cross_entropies():
    def each(logits, target):
        z = np.asarray(logits, dtype=np.float64)
        z = z - z.max(1, keepdims=True)
        return np.log(np.exp(z).sum(1)) - z[np.arange(len(z)), target]

    return each
