"""Which combination of loss, mixing, head and company is best on long-tailed CIFAR-10, judged without its test set.

    python benchmarks/combination.py --data DIR --out OUT                  # an H200 takes five minutes

A long-tailed set has few images of its rare classes to hold out, and with those the tuner's choice is mostly chance
(studies/full/combination_cifar10.toml: the seeds of one recipe differ by 2 to 4 points, the recipes by 1). So here 500
images of every class are held out of CIFAR-10's training set before it is made long-tailed. Who has no more than a
long-tailed set cannot do this; it is the test set that must not be looked at.

All recipes are trained side by side, as one network, and judged after the last epoch.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch

from equipoise.data import Split, Task, load_task
from equipoise.data.split import split_by_class
from equipoise.study import PRESETS
from equipoise.train import Fitting, Recipe, Run, choose_convolutions, fit_pack
from equipoise.train.predict import predict_logits

HELD_OUT = 0.1  # of every class
TASK: dict[str, Any] = {"name": "cifar10", "imbalance": "long_tailed", "ratio": 100, "valid": HELD_OUT, "test": False}
TRAINING = PRESETS["training: equipoise_long_tail CIFAR"].options
BASE = {**TRAINING, "precision": "bf16", "loss": "balanced_softmax"}
TWO, COSINE = {"procedure": "mutual(networks=2)"}, {"head": "cosine(tau=0.05)"}
COMBINATIONS: dict[str, dict] = {
    "CutMix": {"mix": "cutmix"},
    "CutMix, two networks": {"mix": "cutmix", **TWO},
    "CutMix, two networks, decay 2e-4": {"mix": "cutmix", **TWO, "weight_decay": 2e-4},
    "two networks": TWO,
    "cosine head, CutMix, decay 1e-3": {"mix": "cutmix", **COSINE, "weight_decay": 1e-3},
    "cosine head, CutMix, two networks": {"mix": "cutmix", **COSINE, **TWO},
}


def tasks(seed: int, device: torch.device) -> tuple[Task, Split]:
    """Long-tailed images to train on, and as many of every class to judge by."""
    task, everything = load_task(**TASK, seed=seed), load_task(TASK["name"], valid=0, test=False).train
    held_out, _ = split_by_class(everything.labels.numpy(), task.num_classes, HELD_OUT, seed)  # as load_task does
    judged_by = everything.take(torch.from_numpy(np.concatenate(held_out)))
    nothing = task.valid.take(torch.empty(0, dtype=torch.int64))
    return replace(task, valid=nothing).to(device), judged_by.to(device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder for combination.json")
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--device", default="cuda")
    asked, began = parser.parse_args(), time.monotonic()
    if asked.data:
        os.environ["EQUIPOISE_DATA"] = str(asked.data.resolve())
    choose_convolutions()
    device = torch.device(asked.device)
    data = [tasks(seed, device) for seed in range(asked.seeds)]
    names = [(name, seed) for name in COMBINATIONS for seed in range(asked.seeds)]
    runs = []
    for name, seed in names:
        recipe = Recipe.make({**BASE, "epochs": asked.epochs, **COMBINATIONS[name]}, TASK, seed)
        runs.append(Run(recipe, data[seed][0], device))
    fit_pack([Fitting(run, lambda logits, labels: {}) for run in runs])
    found: dict[str, list[float]] = {name: [] for name in COMBINATIONS}
    for (name, seed), run in zip(names, runs, strict=True):
        judged_by = data[seed][1]
        found[name].append(100 * float((predict_logits(run, judged_by).argmax(1) == judged_by.labels).double().mean()))
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "combination.json").write_text(json.dumps({"epochs": asked.epochs, "accuracies": found}, indent=2))
    images = len(data[0][1])
    print(f"{asked.epochs} epochs, {time.monotonic() - began:.0f} s; accuracy on {images:,} held-out images of train:")
    for name, values in sorted(found.items(), key=lambda item: -mean(item[1])):
        print(f"    {name:<40} {mean(values):5.2f} %   ({', '.join(f'{value:.2f}' for value in values)})")


if __name__ == "__main__":
    main()
