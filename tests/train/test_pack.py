"""Packed runs on a GPU: the same numbers alone and in company, and a diverging run leaves the others alone."""

import numpy as np
import pytest
import torch

from equipoise.analysis import evaluate
from equipoise.core import cards
from equipoise.data import load_task
from equipoise.study.run import hardware
from equipoise.train import (
    Diverged,
    Fitting,
    Pack,
    Recipe,
    Run,
    Stopped,
    choose_convolutions,
    fit,
    fit_pack,
    predict,
    profile_step,
)
from equipoise.train.feed import Streamed

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
    {"weighting": "effective_number(normalize='batch')", "accumulate": 4},
]


def metrics(logits, labels):
    return evaluate(logits, labels, np.array([450, 142, 45]))


def fitting(options, folder=None, epochs=4, parent=None):
    recipe = Recipe.make({"model": "cnn_small", "epochs": epochs, **options}, TASK, seed=1)
    device, weights = torch.device("cuda"), parent and parent.network.state_dict()
    return Fitting(Run(recipe, load_task(**recipe.task.__dict__, seed=1).to(device), device, weights), metrics, folder)


def check_same(curves, expected):
    """To the bit."""
    assert curves.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(curves[name], values, err_msg=name)


@pytest.fixture(autouse=True)
def repeatable(monkeypatch):
    """What workers have; put back afterwards."""
    for name in ("benchmark", "deterministic"):
        monkeypatch.setattr(torch.backends.cudnn, name, getattr(torch.backends.cudnn, name))
    choose_convolutions()


def test_a_run_does_not_depend_on_its_company():
    together = fit_pack([fitting(options) for options in METHODS])
    for options, curves in zip(METHODS, together, strict=True):
        (alone,) = fit_pack([fitting(options)])
        check_same(curves, alone)


def test_captured_steps_are_the_eager_steps():
    for options in METHODS:
        (captured,) = fit_pack([fitting(options)])
        plain = fitting(options)
        check_same(fit(plain.run, evaluate=metrics), captured)


@pytest.mark.parametrize(
    "kind", ["loss", "weighting", "mix", "sampler", "augment", "norm", "head", "procedure", "stage"]
)
def test_every_method_comes_to_the_same_weights_twice(kind):
    for card in cards(kind):
        options = {kind: card.name, "epochs": 6 if kind == "procedure" else 2, "lr": 0.01}
        first, second = (trained_weights(options) for _ in range(2))
        for name, value in first.items():
            assert torch.equal(value, second[name]), (card.name, name)


def trained_weights(options):
    first = fitting({k: v for k, v in options.items() if k != "stage"}).run
    run = fitting(options, parent=first).run if "stage" in options else first
    for epoch in range(run.plan.epochs):
        run.epoch(epoch)
    return run.network.state_dict()


def test_one_that_diverges_leaves_the_others_alone():
    alone = fit_pack([fitting({})])
    good, bad = fit_pack([fitting({}), fitting({"lr": 1e30})])
    assert isinstance(bad, Diverged)
    check_same(good, alone[0])


def test_a_stopped_pack_goes_on(tmp_path):
    whole = fit_pack([fitting({"mix": "mfw"}), fitting({"loss": "focal"})])
    asked = iter([False, True])

    def members():
        return [fitting({"mix": "mfw"}, tmp_path / "a"), fitting({"loss": "focal"}, tmp_path / "b")]

    with pytest.raises(Stopped):
        fit_pack(members(), stop=lambda: next(asked))
    for resumed, expected in zip(fit_pack(members()), whole, strict=True):
        check_same(resumed, expected)


def test_a_step_never_waits_for_the_device(never_waiting):
    for options in METHODS:
        run = fitting(options).run
        run.begin_epoch(0)
        run.step()
        with never_waiting():
            run.step()


def test_memory_does_not_grow():
    member = fitting({"mix": "mfw", "ema": 0.9}, epochs=40)
    seen = []
    fit_pack([member], on_epoch=lambda i, epoch, curves: seen.append(torch.cuda.memory_allocated()))
    assert seen[-1] <= seen[4]


def test_captured_validation_is_plain_prediction():
    fittings = [fitting(options, epochs=1) for options in METHODS]
    fit_pack(fittings)
    pack = Pack([f.run for f in fittings])
    for _ in range(2):  # captured, then replayed
        for run, logits in zip(pack.runs, pack.validation_logits(), strict=True):
            torch.testing.assert_close(logits.cpu(), torch.from_numpy(predict(run, run.task.valid)["logits"]))


def test_streamed_images_give_the_resident_runs(tmp_path, monkeypatch):
    monkeypatch.setattr("equipoise.data.cache.WORTH_SHARING", 0)
    device, options = torch.device("cuda"), {"mix": "mfw", "augment": "crop_flip(pad=1)"}
    recipe = Recipe.make({"model": "cnn_small", "epochs": 2, **options}, TASK, seed=1)
    on_disk = load_task(**recipe.task.__dict__, seed=1, cache=tmp_path / "c").to(device)
    streamed = Fitting(Run(recipe, on_disk, device), metrics)
    assert isinstance(streamed.run.feed, Streamed)
    check_same(fit_pack([streamed])[0], fit_pack([fitting(options, epochs=2)])[0])


def test_memory_stays_over_500_epochs():
    members, seen = [fitting({}, epochs=500), fitting({"mix": "mixup"}, epochs=500)], {}
    fit_pack(members, on_epoch=lambda i, epoch, curves: seen.setdefault(epoch, torch.cuda.memory_allocated()))
    assert seen[499] - seen[20] < 2**20


def test_the_pack_size_is_measured():
    recipe = Recipe.make({"model": "cnn_small", "epochs": 1}, TASK, seed=1)
    task = load_task(**recipe.task.__dict__, seed=1).to("cuda")
    found = hardware.packing(recipe, 16, task, False)
    assert found.size in hardware.PACK_SIZES and found.rate > 0 and not found.compiled


def test_a_profile_of_captured_steps():
    run = fitting({"mix": "mfw"}).run
    times = profile_step(run)
    assert 0 < times.total < 1 and min(times.forward, times.backward, times.update) >= 0
