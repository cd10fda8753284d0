"""How many image files a second `equipoise predict` classifies, and where the time goes.

    python benchmarks/predict.py [--images 4000] [--size 64] [--network cnn_small]

Writes JPEG files of noise on smooth colours, then reads and classifies them five times, after one round that does not
count. Images per second of one core depend less on who else uses the machine. "decode" is the reading alone,
"network" the classifying alone of images that are in memory.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from equipoise.data import Frame, ImageFiles
from equipoise.deploy import Calibration, Description, Preprocessing, TrainedModel, find_images, predicted_parts
from equipoise.deploy.prediction import BATCH
from equipoise.train import Recipe, untrained_network

ROUNDS = 5
CLASSES = 10


def write_images(folder: Path, n: int, size: int) -> None:
    rng = np.random.default_rng(0)
    for i in range(n):
        smooth = Image.fromarray(rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)).resize((size, size))
        noisy = np.asarray(smooth).astype(np.int16) + rng.integers(-20, 20, (size, size, 3))
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(folder / f"{i:06d}.jpg", quality=90)


def untrained_model(network: str, size: int) -> TrainedModel:
    """A network that was never trained is as fast as one that was."""
    recipe = Recipe.make({"model": network}, {"name": "digits"})
    facts = {"class_counts": torch.ones(CLASSES), "num_classes": CLASSES, "in_channels": 3}
    description = Description(
        study="speed",
        question="",
        method="none",
        seed=0,
        metric="accuracy",
        verdict="",
        class_names=tuple(map(str, range(CLASSES))),
        class_counts=(1,) * CLASSES,
        preprocessing=Preprocessing(Frame(size), 3, (0.5,) * 3, (0.25,) * 3),
        calibration=Calibration(),
        recipe=recipe.to_dict(),
        fitted={},
        scores={},
        recalls=(),
        parameters=0,
        versions={},
        fingerprint="",
        content=None,
        licence=None,
    )
    return TrainedModel(description, untrained_network(recipe, facts).state_dict())


def rate(n: int, work: Callable[[], object]) -> str:
    work()
    rates, busy = [], []
    for _ in range(ROUNDS):
        began, used = time.perf_counter(), time.process_time()
        work()
        rates.append(n / (time.perf_counter() - began))
        busy.append(n / (time.process_time() - used))
    spread = f"({min(rates):,.0f} to {max(rates):,.0f})"
    return f"{statistics.median(rates):,.0f} images/s {spread}, {statistics.median(busy):,.0f} per second of one core"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=4000)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--network", default="cnn_small")
    asked = parser.parse_args()
    model = untrained_model(asked.network, asked.size)
    with tempfile.TemporaryDirectory() as name:
        write_images(Path(name), asked.images, asked.size)
        found = find_images(name)
        files = ImageFiles(found.paths, model.preprocessing.frame)
        part = files[:BATCH]
        print(
            f"{asked.images} JPEG files of {asked.size} × {asked.size}, {asked.network}, PyTorch {torch.__version__},"
        )
        print(f"{torch.get_num_threads()} threads, load of the machine {os.getloadavg()[0]:.1f}; median of {ROUNDS}")
        print("predict:", rate(asked.images, lambda: list(predicted_parts(model, found))))
        print("decode: ", rate(asked.images, lambda: list(files.readable(BATCH))))
        print("network:", rate(10 * len(part), lambda: [model(part) for _ in range(10)]))


if __name__ == "__main__":
    main()
