"""Images through a loader give the run that resident images give; the layout and the profile of a step are sane."""

import gc
import os

import pytest
import torch

from equipoise.core import EquipoiseError
from equipoise.data import load_task
from equipoise.models import create_model
from equipoise.train import LAYOUTS, Recipe, Run, fastest_layout, fit, profile_step
from equipoise.train.feed import Resident, Streamed

CPU = torch.device("cpu")
TASK = {"name": "blobs", "imbalance": "long_tailed", "ratio": 10, "n_max": 64}


def recipe(**options):
    return Recipe.make({"model": "cnn_small(width=4)", "epochs": 2, "batch_size": 16, **options}, TASK)


def on_disk(tmp_path):
    return load_task(**TASK, cache=tmp_path / "c")


@pytest.fixture(autouse=True)
def small_sets_are_on_disk_too(monkeypatch):
    monkeypatch.setattr("equipoise.data.cache.WORTH_SHARING", 0)


def test_a_streamed_run_is_the_resident_run(tmp_path, monkeypatch):
    options = {"augment": "crop_flip(pad=1)", "mix": "mixup", "sampler": "class_balanced"}
    resident = Run(recipe(**options), load_task(**TASK), CPU)
    monkeypatch.setattr("equipoise.train.loop.feed_of", Streamed)
    streamed = Run(recipe(**options), on_disk(tmp_path), CPU)
    assert isinstance(resident.feed, Resident) and isinstance(streamed.feed, Streamed)
    nothing = {"evaluate": lambda logits, labels: {"sum": float(logits.sum())}}
    assert fit(resident, **nothing) == fit(streamed, **nothing)
    for a, b in zip(resident.network.state_dict().values(), streamed.network.state_dict().values(), strict=True):
        assert torch.equal(a, b)


def test_on_a_cpu_mapped_images_need_no_loader(tmp_path):
    assert isinstance(Run(recipe(), on_disk(tmp_path), CPU).feed, Resident)


def test_a_procedure_wants_its_images_at_hand(tmp_path, monkeypatch):
    monkeypatch.setattr("equipoise.train.loop.feed_of", Streamed)
    with pytest.raises(EquipoiseError, match="must fit the device's memory"):
        Run(recipe(procedure="bbn"), on_disk(tmp_path), CPU)


def test_the_layout_changes_nothing_but_rounding():
    task = load_task(**TASK)
    losses = [fit(Run(recipe(), task, CPU, layout=layout), evaluate=lambda *_: {}) for layout in LAYOUTS.values()]
    assert losses[0]["train_loss"] == pytest.approx(losses[1]["train_loss"], rel=1e-4)


def test_the_clearly_faster_layout_is_chosen(monkeypatch):
    network, x = create_model("cnn_small(width=4)", 3), torch.randn(4, 3, 8, 8)
    monkeypatch.setattr("equipoise.train.layout.SECONDS", 0.0)
    for seconds, expected in (((1.0, 0.9), "channels_last"), ((1.0, 0.7), "contiguous"), ((1.0, 2.0), "channels_last")):
        times = dict(zip(LAYOUTS.values(), seconds, strict=True))
        monkeypatch.setattr("equipoise.train.layout._step", lambda n, i, layout, times=times: lambda: times[layout])
        assert fastest_layout(network, x) == expected
    monkeypatch.undo()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    assert fastest_layout(network, x) in LAYOUTS
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


def test_the_profile_adds_up_to_a_step():
    run = Run(recipe(model="cnn_small", batch_size=64), load_task("digits"), CPU)
    times = profile_step(run)
    assert min(times.data, times.forward, times.backward, times.update) >= 0
    assert 0 < times.total < 5 and times.forward + times.backward > times.data


@pytest.mark.slow
def test_memory_does_not_grow_over_500_epochs():
    run = Run(recipe(epochs=500, model="cnn_small(width=2)", batch_size=90), load_task(**TASK), CPU)
    resident = []
    for epoch in range(500):
        run.epoch(epoch)
        if epoch in (99, 499):
            gc.collect()
            with open("/proc/self/statm") as statm:
                resident.append(int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    assert resident[1] - resident[0] < 2**22, "at most what an allocator moves about"
