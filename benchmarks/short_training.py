"""What of our combinations for long-tailed images is left in the short training of a small network, on a CPU.

    python benchmarks/short_training.py cifar10 --data DIR --seeds 6

The training is that of `equipoise compare` where nothing is pretrained; the images are 2,795 of the set's train, 1,000
to 20 of a class. Judged by a held-out tenth of every class of that training set; the test set stays closed.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from combination import COSINE, HELD_OUT, TWO, Judged, tasks, trained

from equipoise.front.comparison import WHOLE
from equipoise.train import Recipe, Run
from equipoise.train.predict import predict_logits

LONG_TAILED = {"imbalance": "long_tailed", "n_max": 1000, "ratio": 50, "valid": HELD_OUT, "test": False}
BALANCED = {"loss": "balanced_softmax"}
ROWS: dict[str, dict[str, Any]] = {
    "balanced softmax": BALANCED,
    "cosine head": {**BALANCED, **COSINE},
    "cosine head, two networks": {**BALANCED, **COSINE, **TWO},
}


def judged(name: str, options: dict[str, Any], seed: int) -> Judged:
    choice = {"name": name, **LONG_TAILED}
    task, judged_by = tasks(choice, seed, torch.device("cpu"))
    run = Run(Recipe.make({**WHOLE, "augment": "crop_flip", **options}, choice, seed), task, torch.device("cpu"))
    trained([run])
    return Judged(predict_logits(run, judged_by), judged_by.labels, task.class_counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("cifar10", "fashion_mnist"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="NAME")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first-seed", type=int, default=0)
    asked = parser.parse_args()
    if asked.data:
        os.environ["EQUIPOISE_DATA"] = str(asked.data.resolve())
    torch.set_num_threads(1)  # as a study's worker has it
    found: dict[str, list[float]] = {name: [] for name in asked.only}
    for seed in range(asked.first_seed, asked.first_seed + asked.seeds):
        for name in asked.only:
            began, one = time.monotonic(), judged(asked.task, ROWS[name], seed)
            found[name].append(one.accuracy(0))
            groups = ", ".join(f"{share:.1f}" for share in one.groups(0))
            seconds = time.monotonic() - began
            print(f"seed {seed}, {name}: {one.accuracy(0):.2f} % ({groups}), {seconds:.0f} s", flush=True)
    for name, scores in found.items():
        print(f"{name:<28} {mean(scores):.2f}")


if __name__ == "__main__":
    main()
