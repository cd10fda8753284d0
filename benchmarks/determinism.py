"""Whether a run on a GPU is the same to the bit alone, in company, eager, captured, in another process; and the price.

python benchmarks/determinism.py
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys

import torch
from engine import CUDA, a_task, packed

from equipoise.data import Task
from equipoise.train import Pack, Recipe, Run, choose_convolutions

WAYS = {"repeatable": False, "--fast": True}
METHODS = [
    {},
    {"loss": "focal", "norm": "ghost(ghost_size=16)"},
    {"loss": "ldam", "weighting": "effective_number(start=0.5)"},
    {"mix": "mfw", "norm": "batch_group"},
    {"mix": "mixup", "norm": "group"},
    {"mix": "cutmix", "ema": 0.9},
    {"mix": "remix", "loss": "equalization"},
    {"weighting": "bias", "sampler": "class_balanced"},
    {"head": "dropout(keep=0.5)", "nesterov": True, "augment": "rotation"},
    {"loss": "balanced_softmax", "augment": "autoaugment"},
    {"loss": "squared_error(kappa=9.0, magnitude=10.0)", "augment": "resized_crop"},
    {"loss": "sigmoid_focal", "norm": "batch_renorm"},
]
STEPS = 40


def runs(task: Task, model: str, precision: str) -> list[Run]:
    common = {"model": model, "precision": precision, "augment": "crop_flip", "epochs": 2}
    recipes = [Recipe.make({**common, **options}, {"name": "blobs"}, 1) for options in METHODS]
    made = [Run(recipe, task, CUDA) for recipe in recipes]
    for run in made:
        run.begin_epoch(0)
    return made


def state_of(run: Run) -> str:
    """A hash of all weights and moving averages."""
    digest = hashlib.sha256()
    for tensor in run.network.state_dict().values():
        digest.update(tensor.cpu().numpy().tobytes())
    return digest.hexdigest()[:12]


def trained(task: Task, model: str, precision: str, how: str) -> list[str]:
    """The state of each method's run after some steps."""
    made = runs(task, model, precision)
    if how == "eager":
        for run in made:
            for _ in range(STEPS):
                run.step()
    elif how == "together":
        Pack(made).steps(STEPS)
    else:
        for run in made:
            Pack([run]).steps(STEPS)
    return [state_of(run) for run in made]


def child(way: str, model: str, precision: str, rate: bool) -> None:
    choose_convolutions(fast=WAYS[way])
    task = a_task(32, 3, images=6000).to(CUDA)
    states = {how: trained(task, model, precision, how) for how in ("together", "alone", "eager")}
    rates = {}
    if rate:
        task = a_task(32, 3).to(CUDA)
        rates = {count: packed(task, model, count, precision=precision)[0] for count in (1, 8)}
    print(json.dumps({"states": states, "rates": rates}))


def in_child(way: str, model: str, precision: str, rate: bool) -> dict:
    command = [sys.executable, __file__, "--way", way, "--model", model, "--precision", precision]
    done = subprocess.run([*command, *(["--rate"] if rate else [])], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--model", default="resnet32")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--rate", action="store_true")
    parser.add_argument("--networks", nargs="*", default=["resnet32 bf16", "resnet32 float32", "resnet18 bf16"])
    args = parser.parse_args()
    if args.way:
        return child(args.way, args.model, args.precision, args.rate)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; {len(METHODS)} methods, {STEPS} steps")
    for network in args.networks:
        for way in WAYS:
            model, precision = network.split()
            first, second = in_child(way, model, precision, True), in_child(way, model, precision, True)
            states = [*first["states"].values(), *second["states"].values()]
            agree = [len({state[i] for state in states}) == 1 for i in range(len(METHODS))]
            across = [first["states"][how] == second["states"][how] for how in first["states"]]
            rates = " / ".join(f"{max(first['rates'][c], second['rates'][c]):,.0f}" for c in ("1", "8"))
            print(
                f"{network:<18}{way:<22}{rates:>18} images/s (1 / 8 runs); same in all ways {sum(agree)} of "
                f"{len(METHODS)}, between processes {dict(zip(first['states'], across, strict=True))}",
                flush=True,
            )
            if not all(agree):
                print("    differ:", [METHODS[i] for i, same in enumerate(agree) if not same], flush=True)


if __name__ == "__main__":
    main()
