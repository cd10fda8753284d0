"""Times a study of heads: ten methods × ten seeds on the features of 5,000 images, made once.

    python benchmarks/heads.py [--images 5000] [--seeds 10] [--size 64]

The images are digits, shifted at random and written as files, one folder per class. What is measured: the frozen
network looking at all of them, then the whole study from its start to its verdict with the features at hand.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from PIL import Image

import equipoise
from equipoise.data import Task, load_task
from equipoise.store import Store
from equipoise.study import Listener
from equipoise.study.run.images import look_at_images, task_of
from equipoise.train import Recipe, Run, fit

METHODS = {
    "plain": {},
    "focal": {"loss": "focal"},
    "balanced_softmax": {"loss": "balanced_softmax"},
    "ldam": {"loss": "ldam"},
    "logit_norm": {"loss": "logit_norm"},
    "label_smoothing": {"loss": "label_smoothing"},
    "class_balanced": {"weighting": "effective_number(beta=0.999)"},
    "cosine": {"head": "cosine"},
    "balanced_batches": {"sampler": "class_balanced"},
    "logit_adjusted": {"posthoc": "logit_adjust(tau=1.0)"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--size", type=int, default=64, help="side that the network enlarges images to")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        write_images(Path(folder, "images"), asked.images)
        study = study_of(Path(folder, "images"), asked.seeds, asked.size)
        recipe = equipoise.Study.from_dict(study).methods["plain"]
        print(
            f"{platform.machine()}, {os.cpu_count()} cores, PyTorch {torch.__version__}, load {os.getloadavg()[0]:.1f}"
        )
        store = Store(Path(folder, "first")).create()
        timed(f"features of {asked.images:,} images", lambda: look_at_images(recipe, store, torch.device("cpu")))
        task = task_of(recipe, store, torch.device("cpu"))
        timed("one training, with one thread", lambda: train(recipe, task))
        timed(
            f"{len(METHODS)} methods × {asked.seeds} seeds",
            lambda: equipoise.run(study, out=f"{folder}/runs", device="cpu", listener=Listener()),
        )


def write_images(folder: Path, count: int) -> None:
    """Digits of 8x8 in frames of 12x12, each at a random place, in turn until there are `count`."""
    digits = load_task("digits", valid=0).train
    generator = torch.Generator().manual_seed(0)
    for i in range(count):
        row = i % len(digits)
        frame = torch.zeros(12, 12, dtype=torch.uint8)
        top, left = torch.randint(5, (2,), generator=generator).tolist()
        frame[top : top + 8, left : left + 8] = digits.images[row, 0]
        place = folder / str(int(digits.labels[row]))
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(frame.numpy()).save(place / f"{i}.png")


def study_of(folder: Path, seeds: int, size: int) -> dict:
    model = f"efficientnet_lite0(pretrained=True, size={size})"
    return {
        "baseline": "plain",
        "seeds": seeds,
        "task": {"name": f"folder(path='{folder}', size=12)", "imbalance": None},
        "base": {"model": model, "train": "head", "epochs": 30},
        "methods": METHODS,
    }


def train(recipe: Recipe, task: Task) -> None:
    torch.set_num_threads(1)
    fit(Run(recipe, task, torch.device("cpu")), evaluate=lambda logits, labels: {})


def timed(what: str, work: Callable[[], object]) -> None:
    """Seconds by the clock, and of this process on its core: where a machine is shared they differ."""
    clock, core = time.perf_counter(), time.process_time()
    work()
    print(f"{what}: {time.perf_counter() - clock:.1f} s ({time.process_time() - core:.1f} s here)", flush=True)


if __name__ == "__main__":
    main()
