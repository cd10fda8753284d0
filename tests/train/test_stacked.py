"""Runs that are trained as one network: each has the numbers that it would have alone, and those of the plain way."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

from equipoise.data import Split, Task
from equipoise.native.cuda import CannotCompile
from equipoise.train import Diverged, Fitting, Pack, Recipe, Run, Stopped, choose_convolutions, fit_pack
from equipoise.train.stacked import stack, why_not_stacked

CLASSES = 5
COMMON = {"model": "cifar_resnet(depth=8)", "epochs": 2, "batch_size": 24, "precision": "bf16", "lr": 0.02}
METHODS = [
    {},
    {"loss": "ldam", "weighting": "effective_number(start=0.5)"},
    {"mix": "mfw(site='stage2')"},
    {"mix": "mfw(site='stem')", "norm": "ghost(ghost_size=7)"},
    {"mix": "mfw(site='stage3')", "head": "cosine"},
    {"mix": "mixup", "ema": 0.9},
    {"weighting": "bias", "norm": "batch_group"},
    {"norm": "group(groups=4)", "nesterov": True, "affine_towards": 1},
    {"mix": "cmo", "loss": "balanced_softmax"},
    {"mix": "cutmix(share=0.7, stop=0.5)"},
    {"procedure": "mutual(networks=2)", "mix": "mfw(site='stage1')"},
    {"procedure": "mutual(networks=3, weight=2.0)", "mix": "cutmix", "ema": 0.9, "loss": "balanced_softmax"},
]


def a_task(channels: int = 3, side: int = 32) -> Task:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(CLASSES).repeat_interleave(torch.tensor([50, 30, 20, 12, 8]))
    patterns = torch.rand(CLASSES, channels, side, side, generator=generator)
    noise = torch.rand(len(labels), channels, side, side, generator=generator)
    images = ((0.4 * patterns[labels] + 0.6 * noise) * 255).to(torch.uint8)
    few = Split(images[::3], labels[::3])
    return Task("patterns", Split(images, labels), few, few, tuple("abcde"), "")


def a_run(options: dict, device: str = "cuda", task: Task | None = None, seed: int = 0) -> Run:
    recipe = Recipe.make({**COMMON, **options}, {"name": "blobs"}, seed)
    return Run(recipe, (task or a_task()).to(torch.device(device)), torch.device(device))


def accuracy(logits: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    return {"accuracy": float((logits.argmax(1) == labels).float().mean()), "sum": float(logits.double().sum())}


@pytest.mark.parametrize(
    ("options", "task", "reason"),
    [
        ({"precision": "float32"}, a_task(), "float32"),
        ({"accumulate": 2}, a_task(), "plain"),
        ({"model": "cnn_small"}, a_task(), "ResNet"),
        ({"model": "cifar_resnet(depth=8, width=8)"}, a_task(), "width"),
        ({"norm": "batch_renorm"}, a_task(), "BatchRenorm"),
        ({}, a_task(side=28), "32 × 32"),
        ({}, a_task(channels=5), "channels"),
        ({}, a_task(), "GPU"),
    ],
)
def test_what_cannot_be_stacked_is_said(options, task, reason):
    assert reason in why_not_stacked(a_run(options, "cpu", task))


@pytest.mark.parametrize("options", METHODS, ids=str)
def test_what_a_worker_could_stack_on_a_gpu(options):
    """What a worker knows of the team came to it from another process, so that it is equal, not the same."""
    run = a_run(options, "cpu")
    run.team = pickle.loads(pickle.dumps(run.team))
    assert "GPU" in why_not_stacked(run)


def test_without_a_compiler_runs_go_the_other_way(monkeypatch):
    def refuse(runs):
        raise CannotCompile("there is no NVRTC")

    monkeypatch.setattr(stack, "why_not_stacked", lambda run: None)
    monkeypatch.setattr(stack, "Stack", refuse)
    with pytest.warns(UserWarning, match="slower: there is no NVRTC"):
        assert stack.stacks_of([a_run({}, "cpu")]) == []


gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU: runs are stacked on one"),
]


@pytest.fixture
def repeatable(monkeypatch):
    for name in ("benchmark", "deterministic"):
        monkeypatch.setattr(torch.backends.cudnn, name, getattr(torch.backends.cudnn, name))
    choose_convolutions()


class TestOnGpu:
    pytestmark = gpu

    def test_a_run_does_not_depend_on_its_company(self, repeatable):
        together = fit_pack([Fitting(a_run(options), accuracy) for options in METHODS])
        doubled = fit_pack([Fitting(a_run(options), accuracy) for options in METHODS * 2])
        for i, options in enumerate(METHODS):
            assert why_not_stacked(a_run(options)) is None, options
            (alone,) = fit_pack([Fitting(a_run(options), accuracy)])
            for curves in (together[i], doubled[i], doubled[i + len(METHODS)]):
                for name in alone:
                    np.testing.assert_array_equal(curves[name], alone[name], err_msg=f"{options} {name}")

    @pytest.mark.parametrize("options", METHODS, ids=str)
    def test_twenty_steps_are_those_of_the_plain_way(self, options, repeatable):
        """Within the noise of bf16: no further from the plain way in bf16 than that is from float32."""
        losses = {}
        for way, changes in (("plain", {}), ("stacked", {}), ("float32", {"precision": "float32"})):
            run = a_run({**options, "epochs": 8, **changes})
            pack = Pack([run])
            if way == "plain":
                pack.others, pack.stacks = [run], []
            losses[way] = []
            for epoch in range(4):
                run.begin_epoch(epoch)
                pack.steps()
                losses[way].append(run.end_epoch())
        noise = np.abs(np.subtract(losses["plain"], losses["float32"])).max()
        assert np.abs(np.subtract(losses["stacked"], losses["plain"])).max() <= 3 * noise + 0.01, losses
        assert losses["stacked"][-1] < losses["stacked"][0]

    def test_grey_images(self, repeatable):
        task = a_task(channels=1)
        (curves,) = fit_pack([Fitting(a_run({"epochs": 6}, task=task), accuracy)])
        assert curves["train_loss"][-1] < curves["train_loss"][0]

    @pytest.mark.parametrize("options", [{}, {"ema": 0.9}], ids=str)
    def test_moving_averages_are_those_of_the_plain_way(self, options, repeatable):
        states = []
        for plain in (True, False):
            # the weights stay, so that the maps are the same but for rounding
            run = a_run({"lr": 1e-9, "warmup": 0, **options})
            pack = Pack([run])
            if plain:
                pack.others, pack.stacks = [run], []
            run.begin_epoch(0)
            pack.steps()
            states.append(
                {k: v.double() for k, v in run.evaluated.state_dict().items() if "running" in k or "num" in k}
            )
        for name, value in states[0].items():
            scale = value.abs().max() + 1e-3
            assert ((states[1][name] - value).abs() <= 0.03 * scale).all(), name

    def test_stopped_and_taken_up_again(self, tmp_path, repeatable):
        chosen = METHODS[:4]
        whole = fit_pack([Fitting(a_run({**options, "epochs": 4}), accuracy) for options in chosen])

        def fittings():
            runs = [a_run({**options, "epochs": 4}) for options in chosen]
            return [Fitting(run, accuracy, tmp_path / str(i)) for i, run in enumerate(runs)]

        calls = iter([False, True])
        with pytest.raises(Stopped):
            fit_pack(fittings(), stop=lambda: next(calls))
        sizes = [(tmp_path / str(i) / "checkpoint.pt").stat().st_size for i in range(len(chosen))]
        weights = sum(p.numel() for p in a_run({}).network.parameters())
        assert max(sizes) < 3.5 * 4 * weights + 200_000  # the weights and the momentum of one run, not of all
        for curves, expected in zip(fit_pack(fittings()), whole, strict=True):
            assert curves == expected

    def test_one_that_diverges_leaves_the_others_alone(self, repeatable):
        outcomes = fit_pack([Fitting(a_run({"epochs": 3, "lr": lr}), accuracy) for lr in (0.02, 1e30)])
        (alone,) = fit_pack([Fitting(a_run({"epochs": 3}), accuracy)])
        assert isinstance(outcomes[1], Diverged)
        assert outcomes[0] == alone
