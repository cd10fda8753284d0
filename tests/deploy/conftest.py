"""A small study whose methods correct outputs, change the network, renew the head or scale logits."""

import numpy as np
import pytest
import torch
from PIL import Image

import equipoise
from equipoise.study import Listener

METHODS = {
    "plain": {},
    "ldam": {"loss": "ldam"},
    "adjusted": {"posthoc": "logit_adjust(tau=None)"},
    "temperature": {"posthoc": "temperature"},
    "tau_norm": {"posthoc": "tau_norm"},
    "weighing": {"posthoc": "example_weighing(alpha=0.3)"},
    "lws": {"stage": "lws"},
    "bbn": {"procedure": "bbn"},
    "head": {"train": "head"},  # with a file of weights
}
STUDY = {
    "baseline": "plain",
    "seeds": 1,
    "task": {"name": "digits", "imbalance": "long_tailed", "ratio": 10, "n_max": 30},
    "base": {"model": "cnn_small(width=4)", "epochs": 1, "batch_size": 64},
    "methods": METHODS,
}


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    torch.save(equipoise.create_model("cnn_small(width=4)", 2, in_channels=1).state_dict(), runs / "body.pt")
    head = {"train": "head", "weights": str(runs / "body.pt"), "augment": "none"}
    study = {**STUDY, "methods": {**METHODS, "head": head}}
    return equipoise.run(study, runs / "out", device="cpu", workers=1, listener=Listener())


@pytest.fixture(scope="session")
def model(results):
    return results.model("adjusted", seed=0, device="cpu")


@pytest.fixture(scope="session")
def task():
    return equipoise.load_task("digits", imbalance="long_tailed", ratio=10, n_max=30)


@pytest.fixture
def photos(tmp_path, task):
    """Three digits as PNG files, and a file that is no image."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for i in range(3):
        Image.fromarray(task.test.images[i, 0].numpy()).save(folder / f"{i}.png")
    (folder / "2b.png").write_text("not an image")
    return folder


@pytest.fixture
def grey():
    return np.arange(2 * 64, dtype=np.uint8).reshape(2, 1, 8, 8)
