"""By how much a number grows where the best epoch is reported instead of the last.

    python benchmarks/best_epoch.py cifar10 --data DIR --out OUT

Public code for long-tailed data keeps the epoch that is best on the test images, and papers built on it mostly do not
say whether they report that one. Here a tenth of every class is held out of the training set before it is made
long-tailed, and looked at after each epoch in place of the test set. The gain is that of so many held-out images: with
more of them a lucky epoch is less lucky.
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

import torch
from combination import HELD_OUT, tasks, trained

from equipoise.analysis import mean_interval
from equipoise.study import PRESETS
from equipoise.train import Recipe, Run, choose_convolutions

STEPS, COSINE = (
    PRESETS[f"training: {training} CIFAR"].options | {"precision": "bf16", "epochs": 200}
    for training in ("class-balanced", "MFW")
)
LONG = {**COSINE, "epochs": 300}
WEAKENED = {"cifar10": "MFW", "cifar100": "MFW (CIFAR-100)"}


def rows(task: str) -> dict[str, dict[str, Any]]:
    """Trainings that both papers have, by name."""
    mfw = PRESETS[WEAKENED[task]].options
    return {
        "ERM, steps": STEPS,
        "ERM, cosine": COSINE,
        "LDAM-DRW, steps": {**STEPS, **PRESETS["LDAM-DRW"].options},
        "CDT, cosine": {**COSINE, "loss": "cdt"},
        "MFW, cosine, 300 epochs": {**LONG, **mfw},
        "MFW w/ DRW, cosine, 300 epochs": {**LONG, **mfw, "weighting": PRESETS["MFW w/ DRW"].options["weighting"]},
    }


def accuracy(logits: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    return {"accuracy": 100 * float((logits.argmax(1) == labels).double().mean())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=tuple(WEAKENED))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder for best_epoch_TASK.json")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, help="fewer, to try it out")
    parser.add_argument("--device", default="cuda")
    asked, began = parser.parse_args(), time.monotonic()
    if asked.data:
        os.environ["EQUIPOISE_DATA"] = str(asked.data.resolve())
    choose_convolutions()
    device = torch.device(asked.device)
    choice = {"name": asked.task, "imbalance": "long_tailed", "ratio": 100, "valid": HELD_OUT, "test": False}
    data = [replace(task, valid=held_out) for task, held_out in (tasks(choice, s, device) for s in range(asked.seeds))]
    shorter = {"epochs": asked.epochs} if asked.epochs else {}
    names = [(name, seed) for name in rows(asked.task) for seed in range(asked.seeds)]
    recipes = [Recipe.make({**rows(asked.task)[name], **shorter}, choice, seed) for name, seed in names]
    runs = [Run(recipe, data[recipe.seed], device) for recipe in recipes]
    curves = trained(runs, accuracy)
    found: dict[str, list[list[float]]] = {}
    for (name, _), curve in zip(names, curves, strict=True):
        found.setdefault(name, []).append(curve["valid_accuracy"])
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / f"best_epoch_{asked.task}.json").write_text(json.dumps(found))
    seconds, images = time.monotonic() - began, len(data[0].valid)
    print(f"{seconds:.0f} s; accuracy on {images:,} held-out images of train, n = {asked.seeds}:")
    print(f"    {'':<32} {'last epoch':>10} {'best epoch':>10}   gain, 95 % interval")
    for name, of_seeds in found.items():
        gains = [max(curve) - curve[-1] for curve in of_seeds]
        low, high = mean_interval(gains)
        last, best = (mean(map(which, of_seeds)) for which in (lambda curve: curve[-1], max))
        print(f"    {name:<32} {last:10.2f} {best:10.2f}   {mean(gains):.2f} [{low:.2f}, {high:.2f}]")


if __name__ == "__main__":
    main()
