"""Trains every registered network, and the papers' networks of other libraries, for ten steps each.

    python benchmarks/networks.py [--device cuda] [--steps 10] [--only resnet]

Real images (digits, enlarged to the size that the network was made for, three channels), batches of 32, the trainer's
own step; on a GPU captured after the third step, as in a study. The loss must be finite, and the weights must move.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
import torch.nn.functional as F

from equipoise.core import cards
from equipoise.data import Split, Task, load_task
from equipoise.train import Pack, Recipe, Run

LARGE = 224
# 32 or `LARGE` otherwise
SIZES = {"resnet12": 84, "skipblocknet": LARGE, "torchvision/inception_v3": 299, "timm/efficientnet_b4": 320}
OTHERS = (
    "torchvision/inception_v3",
    "torchvision/resnet152",
    "timm/efficientnet_b4",
    "timm/resnext50_32x4d",
    "timm/densenet121",
    "torchvision/squeezenet1_1",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--only", default="", help="networks with this in their names")
    asked = parser.parse_args()
    device = torch.device(asked.device)
    where = torch.cuda.get_device_name() if device.type == "cuda" else platform.processor() or platform.machine()
    print(f"{where}, torch {torch.__version__}, Python {platform.python_version()}\n")
    print(f"{'network':<28} {'image':>5} {'parameters':>12} {'first loss':>10} {'last loss':>10} {'seconds':>8}  ")
    wrong = 0
    for name in [*(card.name for card in cards("model")), *OTHERS]:
        if asked.only in name:
            wrong += not tried(name, device, asked.steps)
    return int(wrong > 0)


def tried(name: str, device: torch.device, steps: int) -> bool:
    size = SIZES.get(name) or (LARGE if "/" in name or is_for_imagenet(name) else 32)
    began = time.perf_counter()
    try:
        parameters, first, last = trained(name, size, device, steps)
    except Exception as error:
        print(f"{name:<28} {size:>5} {type(error).__name__}: {str(error)[:120]}", flush=True)
        return False
    print(
        f"{name:<28} {size:>5} {parameters:>12,} {first:>10.3f} {last:>10.3f} {time.perf_counter() - began:>8.1f}",
        flush=True,
    )
    return first == first and abs(last) < float("inf") and first != last


def trained(name: str, size: int, device: torch.device, steps: int) -> tuple[int, float, float]:
    """Parameters, and the loss of the first and the last step."""
    recipe = Recipe.make(
        {
            "model": name,
            "batch_size": 32,
            "epochs": 1,
            "lr": 0.01,
            "precision": "bf16" if device.type == "cuda" else "float32",
        },
        {"name": "digits", "valid": 0},
    )
    run = Run(recipe, digits(size).to(device), device)
    run.begin_epoch(0)
    pack = Pack([run]) if device.type == "cuda" else None
    losses, before = [], 0.0
    for _ in range(steps):
        if pack is None:
            run.feed.advance()
            run.step()
        else:
            pack.steps(1)
        total = float(run.loss_sum)
        losses.append(total - before)
        before = total
    return sum(p.numel() for p in run.network.parameters()), losses[0], losses[-1]


def is_for_imagenet(name: str) -> bool:
    """Whether it begins with a 7x7 convolution."""
    with torch.device("meta"):
        recipe = Recipe.make({"model": name}, {"name": "digits"})
        from equipoise.models import create_model

        network = create_model(recipe.model, 2)
    first = next(m for m in network.modules() if isinstance(m, torch.nn.Conv2d))
    return first.kernel_size == (7, 7)


@lru_cache(maxsize=1)
def digits(size: int) -> Task:
    task = load_task("digits", valid=0)

    def enlarged(split: Split) -> Split:
        images = F.interpolate(split.images[:512].float(), (size, size)).to(torch.uint8).expand(-1, 3, -1, -1)
        return Split(images.contiguous(), split.labels[:512])

    return replace(
        task, train=enlarged(task.train), test=enlarged(task.test), valid=enlarged(task.test.take(torch.arange(0)))
    )


if __name__ == "__main__":
    raise SystemExit(main())
