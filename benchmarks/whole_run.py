"""Whole runs of one recipe, stacked as one network and on a stream each: do they differ by more than seeds do?

    python benchmarks/whole_run.py --seeds 5 --data DIR --seconds 260      # CIFAR-10-LT, ratio 100, 200 epochs; a GPU
    python benchmarks/whole_run.py --seeds 5 --data DIR --recorded         # stacked runs from docs/results/records

Prints for both ways the training loss at a few epochs and the test accuracy after the last, with 95 % intervals, and
the difference. With --seconds the second way is stopped then, and compared as far as it came.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from equipoise.analysis import mean_interval
from equipoise.data import load_task
from equipoise.reproduction import read_records
from equipoise.study import Study
from equipoise.train import Fitting, Run, Stopped, choose_convolutions, fit_pack
from equipoise.train import pack as packs
from equipoise.train.predict import predict_logits

ROOT = Path(__file__).resolve().parents[1]
STUDY = ROOT / "studies" / "full" / "class_balanced_table2_cifar10_ratio100.toml"
SHOWN = (1, 5, 20, 50, 100, 150, 170, 200)  # epochs


def trained(seeds: int, epochs: int | None, stacked: bool, until: float) -> tuple[list[list[float]], list[float]]:
    """Training losses by seed and epoch, and test accuracies by seed where all epochs were done."""
    study = Study.from_toml(STUDY)
    recipe = study.methods[study.baseline]
    recipe = replace(recipe, plan=replace(recipe.plan, epochs=epochs or recipe.plan.epochs))
    device = torch.device("cuda")
    own = packs.stacks_of
    packs.stacks_of = own if stacked else lambda runs: []
    began = time.monotonic()
    try:
        tasks = [load_task(**recipe.task.__dict__, seed=seed).to(device) for seed in range(seeds)]
        runs = [Run(replace(recipe, seed=seed), task, device) for seed, task in enumerate(tasks)]
        fittings = [Fitting(run, lambda logits, labels: {}) for run in runs]
        accuracies = []
        try:
            fit_pack(fittings, stop=lambda: time.monotonic() > until)
            for run in runs:
                right = predict_logits(run, run.task.test).argmax(1) == run.task.test.labels
                accuracies.append(100 * float(right.double().mean()))
        except Stopped:
            print("stopped: the time is up", flush=True)
    finally:
        packs.stacks_of = own
    way = "stacked" if stacked else "on a stream each"
    print(f"{way}: {fittings[0].epoch} epochs of {seeds} runs in {time.monotonic() - began:.0f} s", flush=True)
    return [fitting.curves["train_loss"] for fitting in fittings], accuracies


def recorded(seeds: int) -> list[float]:
    """Test accuracies of the same recipe and seeds, trained stacked, from docs/results/records."""
    study = Study.from_toml(STUDY)
    kept = read_records(ROOT / "docs" / "results" / "records")[study.name]
    runs = {run.seed: run for run in kept.runs if run.method == study.baseline}
    return [100 * runs[seed].metrics["accuracy"] for seed in range(seeds)]


def row(what: str, ours: list[float], others: list[float], digits: int) -> str:
    """Mean and interval of both ways, and the difference with its interval (Welch's)."""
    texts = []
    for values in (ours, others):
        low, high = mean_interval(values)
        texts.append(f"{np.mean(values):.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]")
    difference = np.mean(ours) - np.mean(others)
    error = np.sqrt(np.var(ours, ddof=1) / len(ours) + np.var(others, ddof=1) / len(others))
    return f"{what:<22} {texts[0]:>28} {texts[1]:>28}   {difference:+.{digits}f} ± {error:.{digits}f} (standard error)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, help="default as the study says")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--recorded", action="store_true", help="train no stacked runs; accuracies alone are compared")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    asked = parser.parse_args()
    if asked.data:
        os.environ["EQUIPOISE_DATA"] = str(asked.data.resolve())
    until = time.monotonic() + asked.seconds
    choose_convolutions()
    if asked.recorded:
        print(f"{'n = ' + str(asked.seeds):<22} {'stacked':>28} {'on a stream each':>28}   difference")
        others = trained(asked.seeds, None, False, until)[1]
        print(row("test accuracy, %", recorded(asked.seeds), others, 2), [f"{value:.2f}" for value in others])
        return
    curves, accuracies = zip(
        *(trained(asked.seeds, asked.epochs, stacked, until) for stacked in (True, False)), strict=True
    )
    print(f"{'n = ' + str(asked.seeds):<22} {'stacked':>28} {'on a stream each':>28}   difference")
    for epoch in SHOWN:
        if all(len(curve) >= epoch for way in curves for curve in way):
            print(row(f"loss of epoch {epoch}", *([curve[epoch - 1] for curve in way] for way in curves), 4))
    if all(accuracies):
        print(row("test accuracy, %", *accuracies, 2))


if __name__ == "__main__":
    main()
