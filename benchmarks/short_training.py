"""What the methods of `equipoise compare` are worth in its own training, short and of a small network, on a CPU.

    python benchmarks/short_training.py cifar10 --data DIR --seeds 8
    python benchmarks/short_training.py cifar10 --data DIR --seeds 8 --frozen

The methods are those of its shortlist, and some that might be on it. The training is that of `compare` where nothing
is pretrained or, with --frozen, that of a head on what a trained network sees; the images are 2,795 of the set's train,
1,000 to 20 of a class. Judged by a held-out tenth of every class of that training set, each seed by the same images for
all methods; the test set stays closed.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from combination import COSINE, HELD_OUT, TWO, Judged, tasks, trained

from equipoise.analysis import compare
from equipoise.core import known
from equipoise.data import long_tailed_counts
from equipoise.front.comparison import HEAD, WHOLE
from equipoise.report.render import words
from equipoise.study.shortlist import beta_for, shortlist
from equipoise.train import Recipe, Run, embedded
from equipoise.train.predict import predict_logits

CPU = torch.device("cpu")
LONG_TAILED: dict[str, Any] = {"imbalance": "long_tailed", "n_max": 1000, "ratio": 50, "valid": HELD_OUT, "test": False}
COUNTS = long_tailed_counts(10, LONG_TAILED["n_max"], LONG_TAILED["ratio"])
SIDE = 128  # of the square that the trained network sees
ADJUSTED = "logit adjustment"  # of the plain network's answers: no training of its own
LATE = {"weighting": f"effective_number(beta={beta_for(1000)}, start=0.8, normalize='batch')"}
BALANCED = {"loss": "balanced_softmax"}
FURTHER: dict[bool, dict[str, dict[str, Any]]] = {
    False: {
        "Remix-DRW": {"mix": "remix", **LATE},
        "balanced softmax, Remix": {**BALANCED, "mix": "remix"},
        "balanced softmax, cosine head, Remix": {**BALANCED, **COSINE, "mix": "remix"},
        "balanced softmax, cosine head, two networks": {**BALANCED, **COSINE, **TWO},
    },
    True: {"balanced softmax, cosine head": {**BALANCED, **COSINE}},
}


def rows_of(frozen: bool) -> dict[str, dict[str, Any]]:
    """What is trained: the shortlist but for corrections afterwards, and what else might be on it."""
    listed = {candidate.name: dict(candidate.options) for candidate in shortlist(COUNTS, frozen)}
    return {name: options for name, options in listed.items() if "posthoc" not in options} | FURTHER[frozen]


def judged(name: str, options: dict[str, Any], seed: int, frozen: bool) -> Judged:
    choice = {"name": name, **LONG_TAILED}
    base, through = {**WHOLE, "augment": "crop_flip"}, None
    if frozen:
        base = {**HEAD, "model": f"efficientnet_lite0(pretrained=True, size={SIDE})"}
        through = partial(embedded, model=base["model"], weights=None, device=CPU)
    task, judged_by = tasks(choice, seed, CPU, through)
    run = Run(Recipe.make({**base, **options}, choice, seed), task, CPU)
    trained([run])
    return Judged(predict_logits(run, judged_by), judged_by.labels, task.class_counts)


def print_scores(found: dict[str, list[float]]) -> None:
    """Means, and paired differences to the plain training where that was among the rows."""
    verdict = compare(found, "plain" if "plain" in found else next(iter(found)), metric="accuracy")
    for method in verdict.methods:
        mean, difference = words.value(method.mean, "accuracy"), words.value(method.difference, "accuracy", sign=True)
        here = words.interval(method.low, method.high, "accuracy")
        between = words.interval(method.diff_low, method.diff_high, "accuracy", sign=True)
        p = words.p_value(method.p_holm)
        print(f"{method.name:<44} {mean} {here}   {difference} {between}   p {p} {method.standing}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("cifar10", "fashion_mnist"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="default all")
    parser.add_argument("--frozen", action="store_true", help="heads on a trained network's features")
    parser.add_argument("--seeds", type=int, default=8)
    asked = parser.parse_args()
    if asked.data:
        os.environ["EQUIPOISE_DATA"] = str(asked.data.resolve())
    torch.set_num_threads(1)  # as a study's worker has it
    rows, found = rows_of(asked.frozen), dict[str, list[float]]()
    for seed in range(asked.seeds):
        for name in asked.only or rows:
            began = time.monotonic()
            one = judged(asked.task, rows[known("row", name, rows)], seed, asked.frozen)
            for told, tau in {name: 0.0, **({ADJUSTED: 1.0} if name == "plain" else {})}.items():
                found.setdefault(told, []).append(one.accuracy(tau) / 100)
                groups = ", ".join(f"{share:.1f}" for share in one.groups(tau))
                print(
                    f"seed {seed}, {told}: {one.accuracy(tau):.2f} % ({groups}), {time.monotonic() - began:.0f} s",
                    flush=True,
                )
    print_scores(found)


if __name__ == "__main__":
    main()
