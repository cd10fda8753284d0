"""What the methods of `equipoise compare` are worth in its own training, short and of a small network, on a CPU.

    python benchmarks/short_training.py cifar10 --data DIR --seeds 8
    python benchmarks/short_training.py cifar10 --data DIR --seeds 8 --frozen
    python benchmarks/short_training.py cifar10 --data DIR --seeds 8 --frozen --largest 300 --ratio 4
    python benchmarks/short_training.py cifar10 --data DIR --seeds 8 --frozen --only plain --vary weight_decay 2e-4 0.02
    python benchmarks/short_training.py cifar10 --data DIR --seeds 8 --frozen --set optimizer=adamw lr=1e-3 epochs=200

The methods are those of its shortlist for such classes and, where nothing is pretrained, some that might be on it. The
training is that of `compare`: of a small network or, with --frozen, of a head on what a trained network sees; the
images are 2,795 of the set's train, 1,000 to 20 of a class, if nothing else is asked. Judged by a held-out tenth of
every class of that training set, each seed by the same images for all methods; the test set stays closed. Differences
are to the first row.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from combination import HELD_OUT, TWO, Judged, tasks, trained

from equipoise.analysis import compare
from equipoise.core import known
from equipoise.data import long_tailed_counts
from equipoise.front.comparison import HEAD, WHOLE
from equipoise.report.render import words
from equipoise.study.shortlist import COSINE, beta_for, shortlist
from equipoise.train import Recipe, Run, embedded
from equipoise.train.predict import predict_logits

CPU = torch.device("cpu")
SIDE = 128  # of the square that the trained network sees
CLASSES = {"cifar10": 10, "cifar100": 100, "fashion_mnist": 10}
ADJUSTED = "logit adjustment"  # of the plain network's answers: no training of its own
BALANCED = {"loss": "balanced_softmax"}


@dataclass(frozen=True)
class Row:
    """A training, and under which name its answers are judged once more, without the log prior."""

    options: dict[str, Any]
    adjusted: str | None = None

    def changed(self, options: dict[str, Any], suffix: str = "") -> Row:
        return replace(self, options={**self.options, **options}, adjusted=self.adjusted and self.adjusted + suffix)


def rows_of(classes: int, largest: int, ratio: float, frozen: bool) -> dict[str, Row]:
    """What is trained: the shortlist but for corrections afterwards, and what else might be on it."""
    plain, *others = shortlist(long_tailed_counts(classes, largest, ratio), frozen)
    rows = {plain.name: Row(dict(plain.options), ADJUSTED)}
    rows |= {each.name: Row(dict(each.options)) for each in others if "posthoc" not in each.options}
    return rows if frozen else rows | {name: Row(options) for name, options in further(largest).items()}


def further(largest: int) -> dict[str, dict[str, Any]]:
    """What might be on the shortlist, and is not."""
    late = {"weighting": f"effective_number(beta={beta_for(largest)}, start=0.8, normalize='batch')"}
    return {
        "MFW-DRW": {"mix": "mfw(alpha=1.0)", **late},
        "Remix-DRW": {"mix": "remix", **late},
        "balanced softmax, Remix": {**BALANCED, "mix": "remix"},
        "balanced cosine softmax, Remix": {**BALANCED, **COSINE, "mix": "remix"},
        "balanced cosine softmax, two networks": {**BALANCED, **COSINE, **TWO},
    }


def varied(rows: dict[str, Row], option: str, values: list[str]) -> dict[str, Row]:
    """Each row with each value of an option."""
    return {
        f"{name}, {option} {value}": row.changed({option: read(value)}, f", {option} {value}")
        for name, row in rows.items()
        for value in values
    }


def read(value: str) -> Any:
    """A number, where it is one."""
    try:
        return json.loads(value)
    except ValueError:
        return value


def judged(choice: dict[str, Any], options: dict[str, Any], seed: int, frozen: bool) -> tuple[Judged, Judged]:
    """What it says of held-out images, and of those that it was trained on."""
    base, through = {**WHOLE, "augment": "crop_flip"}, None
    if frozen:
        base = {**HEAD, "model": f"efficientnet_lite0(pretrained=True, size={SIDE})"}
        through = partial(embedded, model=base["model"], weights=None, device=CPU)
    task, judged_by = tasks(choice, seed, CPU, through)
    run = Run(Recipe.make({**base, **options}, choice, seed), task, CPU)
    trained([run])
    held_out, own = (
        Judged(predict_logits(run, images), images.labels, task.class_counts) for images in (judged_by, task.train)
    )
    return held_out, own


def print_scores(found: dict[str, list[float]], errors: dict[str, list[float]]) -> None:
    """Means, paired differences to the first row, and how far confidence is from accuracy."""
    verdict = compare(found, next(iter(found)), metric="accuracy")
    for method in verdict.methods:
        mean, difference = words.value(method.mean, "accuracy"), words.value(method.difference, "accuracy", sign=True)
        here = words.interval(method.low, method.high, "accuracy")
        between = words.interval(method.diff_low, method.diff_high, "accuracy", sign=True)
        p = words.p_value(method.p_holm)
        off = words.value(fmean(errors[method.name]), "ece")
        print(f"{method.name:<44} {mean} {here}   {difference} {between}   p {p} {method.standing}   ece {off}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=CLASSES)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="default all")
    parser.add_argument("--frozen", action="store_true", help="heads on a trained network's features")
    parser.add_argument("--largest", type=int, default=1000, help="images of the largest class")
    parser.add_argument("--ratio", type=float, default=50, help="of the largest class to the smallest")
    parser.add_argument("--set", nargs="+", metavar="OPTION=VALUE", default=[], help="of every training")
    parser.add_argument("--vary", nargs="+", metavar=("OPTION", "VALUE"), help="an option, and values to try it with")
    parser.add_argument("--seeds", type=int, default=8)
    asked = parser.parse_args()
    if asked.data:
        os.environ["EQUIPOISE_DATA"] = str(asked.data.resolve())
    torch.set_num_threads(1)  # as a study's worker has it
    rows = rows_of(CLASSES[asked.task], asked.largest, asked.ratio, asked.frozen)
    common = {option: read(value) for option, _, value in (text.partition("=") for text in asked.set)}
    rows = {name: rows[known("row", name, rows)].changed(common) for name in asked.only or rows}
    rows = varied(rows, asked.vary[0], asked.vary[1:]) if asked.vary else rows
    tail = {"imbalance": "long_tailed", "n_max": asked.largest, "ratio": asked.ratio}
    choice = {"name": asked.task, **tail, "valid": HELD_OUT, "test": False}
    found, errors = dict[str, list[float]](), dict[str, list[float]]()
    for seed in range(asked.seeds):
        for name, row in rows.items():
            began = time.monotonic()
            one, own = judged(choice, row.options, seed, asked.frozen)
            for told, tau in [(name, 0.0), *([(row.adjusted, 1.0)] if row.adjusted else [])]:
                found.setdefault(told, []).append(one.accuracy(tau) / 100)
                errors.setdefault(told, []).append(one.calibration_error(tau))
                groups = ", ".join(f"{share:.1f}" for share in one.groups(tau))
                said = f"{one.accuracy(tau):.2f} % ({groups}), of its own images {own.accuracy(tau):.2f} %"
                print(f"seed {seed}, {told}: {said}, {time.monotonic() - began:.0f} s", flush=True)
    print_scores(found, errors)


if __name__ == "__main__":
    main()
