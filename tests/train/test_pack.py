"""Packed runs on a GPU: the same numbers alone and in company, and a diverging run leaves the others alone."""

import numpy as np
import pytest
import torch

from equipoise.analysis import evaluate
from equipoise.data import load_task
from equipoise.train import Diverged, Fitting, Recipe, Run, Stopped, fit, fit_pack

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU: runs are packed by CUDA graphs"),
]

TASK = {"name": "blobs", "imbalance": "long_tailed", "ratio": 10}
METHODS = [
    {},
    {"loss": "focal"},
    {"loss": "ldam", "weighting": "effective_number(start=0.5)"},
    {"mix": "mfw"},
    {"mix": "mixup", "ema": 0.9},
    {"weighting": "bias", "sampler": "class_balanced"},
    {"head": "dropout(keep=0.5)", "nesterov": True},
    {"loss": "balanced_softmax", "augment": "crop_flip(pad=1)"},
]


def metrics(logits, labels):
    return evaluate(logits, labels, np.array([450, 142, 45]))


def fitting(options, folder=None, epochs=4):
    recipe = Recipe.make({"model": "cnn_small", "epochs": epochs, **options}, TASK, seed=1)
    device = torch.device("cuda")
    return Fitting(Run(recipe, load_task(**recipe.task.__dict__, seed=1).to(device), device), metrics, folder)


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


def test_a_run_does_not_depend_on_its_company():
    together = fit_pack([fitting(options) for options in METHODS])
    for options, curves in zip(METHODS, together, strict=True):
        (alone,) = fit_pack([fitting(options)])
        assert curves == pytest.approx(alone, rel=1e-3), options


def test_captured_steps_are_the_eager_steps():
    for options in METHODS:
        (captured,) = fit_pack([fitting(options)])
        plain = fitting(options)
        assert fit(plain.run, evaluate=metrics) == pytest.approx(captured, rel=1e-3), options


def test_one_that_diverges_leaves_the_others_alone():
    alone = fit_pack([fitting({})])
    good, bad = fit_pack([fitting({}), fitting({"lr": 1e30})])
    assert isinstance(bad, Diverged)
    assert good == pytest.approx(alone[0], rel=1e-3)


def test_a_stopped_pack_goes_on(tmp_path):
    whole = fit_pack([fitting({"mix": "mfw"}), fitting({"loss": "focal"})])
    asked = iter([False, True])

    def members():
        return [fitting({"mix": "mfw"}, tmp_path / "a"), fitting({"loss": "focal"}, tmp_path / "b")]

    with pytest.raises(Stopped):
        fit_pack(members(), stop=lambda: next(asked))
    for resumed, expected in zip(fit_pack(members()), whole, strict=True):
        assert resumed == pytest.approx(expected, rel=1e-3)


def test_a_step_never_waits_for_the_device():
    for options in METHODS:
        run = fitting(options).run
        run.begin_epoch(0)
        run.step()
        torch.cuda.set_sync_debug_mode("error")
        try:
            run.step()
        finally:
            torch.cuda.set_sync_debug_mode("default")


def test_memory_does_not_grow():
    member = fitting({"mix": "mfw", "ema": 0.9}, epochs=40)
    seen = []
    fit_pack([member], on_epoch=lambda i, epoch, curves: seen.append(torch.cuda.memory_allocated()))
    assert seen[-1] <= seen[4]
