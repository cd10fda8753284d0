"""Which combination of loss, mixing, head and company is best on a long-tailed CIFAR, judged without its test set.

    python benchmarks/combination.py cifar100 --data DIR --out OUT

A long-tailed set has few images of its rare classes to hold out, and with those the tuner's choice is mostly chance
(studies/full/combination_cifar10.toml: the seeds of one recipe differ by 2 to 4 points, the recipes by 1). So here a
tenth of the images of every class is held out of the training set before it is made long-tailed. Who has no more than a
long-tailed set cannot do this; it is the test set that must not be looked at.

All recipes are trained side by side, as one network, and judged after the last epoch: as they are, and with as much of
the training prior taken out of their answers afterwards (`logit_adjust`) as is best on the held-out images, which costs
no training.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from torch import Tensor

from equipoise.analysis import expected_calibration_error, group_accuracy
from equipoise.data import Source, Split, Task, load_task
from equipoise.data.split import split_by_class
from equipoise.imbalance import logit_adjustment
from equipoise.study import PRESETS
from equipoise.train import Diverged, Fitting, Recipe, Run, choose_convolutions, fit_one, fit_pack
from equipoise.train.fit import Curves, Evaluate
from equipoise.train.predict import predict_logits

HELD_OUT = 0.1  # of every class
TAUS = tuple(tenths / 10 for tenths in range(-5, 16))  # of the log prior, taken out after training
TRAINING = PRESETS["training: equipoise_long_tail CIFAR"].options
BASE = {**TRAINING, "precision": "bf16", "loss": "balanced_softmax"}
HALF, EARLY = {"mix": "cutmix(share=0.5)"}, {"mix": "cutmix(stop=0.75)"}
COSINE = {"head": "cosine(tau=0.05)"}
TWO, THREE = ({"procedure": f"mutual(networks={networks})"} for networks in (2, 3))
LATE = {"weighting": "effective_number(beta=0.9999, start=0.8, normalize='batch')"}
CUTOUT = {"augment": "autoaugment(policy='cifar10', cutout=16)"}
COMBINATIONS: dict[str, dict[str, Any]] = {
    "CutMix": {"mix": "cutmix"},
    "CutMix, two networks": {"mix": "cutmix", **TWO},
    "CutMix, two networks, decay 2e-4": {"mix": "cutmix", **TWO, "weight_decay": 2e-4},
    "two networks": TWO,
    "cosine head, CutMix, decay 1e-3": {"mix": "cutmix", **COSINE, "weight_decay": 1e-3},
    "cosine head, CutMix, two networks": {"mix": "cutmix", **COSINE, **TWO},
    "half CutMix": HALF,
    "half CutMix, two networks": {**HALF, **TWO},
    "half CutMix, three networks": {**HALF, **THREE},
    "half CutMix, two networks, late weights": {**HALF, **TWO, **LATE},
    "half CutMix, two networks, tau 1.5": {**HALF, **TWO, "loss": "logit_adjusted(tau=1.5)"},
    "cosine head, half CutMix, two networks": {**HALF, **COSINE, **TWO},
    "oversampling CutMix": {"mix": "cmo"},
    "oversampling CutMix, two networks": {"mix": "cmo", **TWO},
    "CutMix till three quarters, two networks": {**EARLY, **TWO},
    "oversampling CutMix till three quarters, two networks": {"mix": "cmo(stop=0.75)", **TWO},
    "no mixing": {},
    "Cutout": CUTOUT,
    "Cutout, two networks": {**CUTOUT, **TWO},
    "Cutout, two networks, decay 1e-3": {**CUTOUT, **TWO, "weight_decay": 1e-3},
    "cosine head, Cutout, two networks": {**CUTOUT, **COSINE, **TWO},
    "Cutout, half CutMix, two networks": {**CUTOUT, **HALF, **TWO},
}


@dataclass(frozen=True)
class Judged:
    """What a network says of held-out images, as many of every class, and what it was trained on."""

    logits: Tensor
    labels: Tensor
    class_counts: Tensor

    def accuracy(self, tau: float) -> float:
        return 100 * float((self._said(tau) == self.labels).double().mean())

    def groups(self, tau: float) -> list[float]:
        """Accuracy of the classes with many, a medium number of and few training images."""
        found = group_accuracy(self._said(tau), self.labels, self.class_counts)
        return [100 * float(of_group) for of_group in found.values()]

    def calibration_error(self, tau: float) -> float:
        return float(expected_calibration_error(self._adjusted(tau).softmax(1), self.labels))

    def _said(self, tau: float) -> Tensor:
        return self._adjusted(tau).argmax(1)

    def _adjusted(self, tau: float) -> Tensor:
        return logit_adjustment(self.logits, self.class_counts, tau)


def tasks(
    choice: dict[str, Any], seed: int, device: torch.device, through: Callable[[Source], Source] | None = None
) -> tuple[Task, Split]:
    """Long-tailed images to train on, and as many of every class to judge by; `through` may put features there."""
    task = load_task(**choice, seed=seed, through=through)
    everything = load_task(choice["name"], valid=0, test=False, through=through).train
    held_out, _ = split_by_class(everything.labels.numpy(), task.num_classes, HELD_OUT, seed)  # as load_task does
    judged_by = everything.take(torch.from_numpy(np.concatenate(held_out)))
    nothing = task.valid.take(torch.empty(0, dtype=torch.int64))
    return replace(task, valid=nothing).to(device), judged_by.to(device)


def trained(runs: Sequence[Run], evaluate: Evaluate = lambda logits, labels: {}) -> list[Curves]:
    """Their curves: trained side by side on a GPU, one after the other elsewhere."""
    began = time.monotonic()

    def tell(member: int, epoch: int, curves: Curves) -> None:
        if not member and epoch % 10 == 0:
            print(f"epoch {epoch} after {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    fittings = [Fitting(run, evaluate) for run in runs]
    if runs[0].device.type != "cuda":
        return [fit_one(fitting, on_epoch=partial(tell, i)) for i, fitting in enumerate(fittings)]
    ended = fit_pack(fittings, on_epoch=tell)
    for curves in ended:
        if isinstance(curves, Diverged):
            raise curves
    return ended  # type: ignore[return-value]


def found_of(names: list[tuple[str, int]], choice: dict[str, Any], epochs: int, device: torch.device) -> list[Judged]:
    """Train each combination with its seed, all together."""
    data = {seed: tasks(choice, seed, device) for seed in {seed for _, seed in names}}
    runs = []
    for name, seed in names:
        recipe = Recipe.make({**BASE, "epochs": epochs, **COMBINATIONS[name]}, choice, seed)
        runs.append(Run(recipe, data[seed][0], device))
    trained(runs)
    return [
        Judged(predict_logits(run, judged_by).cpu(), judged_by.labels.cpu(), task.class_counts.cpu())
        for (_, seed), run in zip(names, runs, strict=True)
        for task, judged_by in [data[seed]]
    ]


def summary(seeds: list[Judged]) -> dict[str, Any]:
    """Of one combination: accuracies as it is and at the best τ, which is that of the mean over its seeds."""
    tau = max(TAUS, key=lambda tau: (mean(one.accuracy(tau) for one in seeds), -abs(tau)))
    return {
        "plain": [one.accuracy(0) for one in seeds],
        "plain groups": [mean(values) for values in zip(*(one.groups(0) for one in seeds), strict=True)],
        "tau": tau,
        "adjusted": [one.accuracy(tau) for one in seeds],
        "adjusted groups": [mean(values) for values in zip(*(one.groups(tau) for one in seeds), strict=True)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("cifar10", "cifar100"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder for combination_TASK.json")
    parser.add_argument("--only", nargs="+", choices=COMBINATIONS, default=list(COMBINATIONS), metavar="NAME")
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--device", default="cuda")
    asked, began = parser.parse_args(), time.monotonic()
    if asked.data:
        os.environ["EQUIPOISE_DATA"] = str(asked.data.resolve())
    choose_convolutions()
    choice = {"name": asked.task, "imbalance": "long_tailed", "ratio": 100, "valid": HELD_OUT, "test": False}
    names = [(name, seed) for name in asked.only for seed in range(asked.seeds)]
    judged = found_of(names, choice, asked.epochs, torch.device(asked.device))
    found = {name: summary([j for (of, _), j in zip(names, judged, strict=True) if of == name]) for name in asked.only}
    asked.out.mkdir(parents=True, exist_ok=True)
    kept = {"task": asked.task, "epochs": asked.epochs, "combinations": found}
    (asked.out / f"combination_{asked.task}.json").write_text(json.dumps(kept, indent=2))
    images = len(judged[0].labels)
    print(f"{asked.epochs} epochs, {time.monotonic() - began:.0f} s; accuracy on {images:,} held-out images of train:")
    print(f"    {'':<54} {'as it is':>8}   many, medium, few     {'τ':>4} {'adjusted':>8}   many, medium, few")
    for name, one in sorted(found.items(), key=lambda item: -mean(item[1]["adjusted"])):
        plain, adjusted = (
            ", ".join(f"{share:4.1f}" for share in one[f"{which} groups"]) for which in ("plain", "adjusted")
        )
        numbers = (
            f"{mean(one['plain']):8.2f}   {plain}",
            f"{one['tau']:8.1f} {mean(one['adjusted']):8.2f}   {adjusted}",
        )
        print(f"    {name:<54} {'   '.join(numbers)}")


if __name__ == "__main__":
    main()
