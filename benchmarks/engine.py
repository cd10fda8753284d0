"""Images per second of training: our runs, alone and packed, beside a loop as people write it. One process, medians.

python benchmarks/engine.py                    # what this machine has: GPU if there is one, else CPU
python benchmarks/engine.py --model resnet18
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from equipoise.data import Split, Task, long_tailed_counts
from equipoise.models import create_model
from equipoise.train import Pack, Recipe, Run

BATCH = 128


def a_task(size: int, channels: int, num_classes: int = 10, n_max: int = 5000) -> Task:
    """Random images with the class sizes of CIFAR-10-LT at ratio 100: speed does not depend on what they show."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(num_classes).repeat_interleave(torch.tensor(long_tailed_counts(num_classes, n_max, 100)))
    images = torch.randint(0, 256, (len(labels), channels, size, size), dtype=torch.uint8, generator=generator)
    few = Split(images[:256], labels[:256])
    return Task("random", Split(images, labels), few, few, tuple(map(str, range(num_classes))), "")


class UsualDataset(Dataset):
    """As in a thousand repositories: one image at a time, transforms in numpy, normalised to a float tensor."""

    def __init__(self, split: Split, pad: int) -> None:
        self.images = split.images.permute(0, 2, 3, 1).numpy()
        self.labels = split.labels.tolist()
        self.pad = pad

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        image, pad = self.images[i], self.pad
        h, w, _ = image.shape
        image = np.pad(image, ((pad, pad), (pad, pad), (0, 0)))
        top, left = np.random.randint(0, 2 * pad + 1, 2)
        image = image[top : top + h, left : left + w]
        if np.random.rand() < 0.5:
            image = image[:, ::-1]
        tensor = torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1).float().div(255)
        return (tensor - 0.45) / 0.25, self.labels[i]


def usual_loop(task: Task, model: str, device: torch.device, workers: int, seconds: float) -> float:
    """Images per second of the peer: DataLoader with workers, float32, eager, loss.item() at every step."""
    channels = task.train.images.shape[1]
    network = create_model(model, task.num_classes, in_channels=channels).to(device)
    loader = DataLoader(
        UsualDataset(task.train, 4),
        batch_size=BATCH,
        shuffle=True,
        num_workers=workers,
        drop_last=True,
        pin_memory=device.type == "cuda",
        persistent_workers=workers > 0,
    )
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=2e-4)
    criterion = torch.nn.CrossEntropyLoss()
    seen, began, total = 0, None, 0.0
    while True:
        for images, labels in loader:
            images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            loss = criterion(network(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            if began is None:
                began = time.perf_counter()  # the first batch waits for the workers to start
                continue
            seen += len(labels)
            if time.perf_counter() - began > seconds:
                return seen / (time.perf_counter() - began)


def make_run(task: Task, model: str, device: torch.device, seed: int, precision: str, compiled: bool) -> Run:
    methods = [{}, {"loss": "focal"}, {"loss": "ldam"}, {"mix": "mfw"}, {"weighting": "effective_number(start=0.8)"}]
    common = {"model": model, "precision": precision, "augment": "crop_flip", "batch_size": BATCH}
    options = {**common, **methods[seed % len(methods)]}
    run = Run(Recipe.make(options, {"name": "blobs"}, seed), task, device)
    if compiled:
        run.compile()
    return run


def packed(
    task: Task, model: str, device: torch.device, count: int, precision: str, compiled: bool, epochs: int
) -> float:
    """Images per second in all of `count` runs of different methods in one captured graph; the median of the epochs."""
    pack = Pack([make_run(task, model, device, seed, precision, compiled) for seed in range(count)])
    rates = []
    for epoch in range(epochs + 1):
        for run in pack.runs:
            run.begin_epoch(epoch)
        torch.cuda.synchronize()
        began = time.perf_counter()
        pack.steps()
        torch.cuda.synchronize()
        rates.append(count * pack.steps_per_epoch * BATCH / (time.perf_counter() - began))
    return statistics.median(rates[1:])  # the first epoch captures


def eager(task: Task, model: str, device: torch.device, precision: str, seconds: float) -> float:
    """Images per second of one run, step by step."""
    run = make_run(task, model, device, 0, precision, compiled=False)
    run.begin_epoch(0)
    for _ in range(3):
        run.step()
    wait = torch.cuda.synchronize if device.type == "cuda" else (lambda: None)
    wait()
    began, steps = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        for _ in range(10):
            run.done.remainder_(run.steps_per_epoch)  # stay inside the epoch
            run.step()
        wait()
        steps += 10
    return steps * BATCH / (time.perf_counter() - began)


def on_gpu(model: str, size: int, seconds: float) -> None:
    device = torch.device("cuda")
    torch.backends.cudnn.benchmark = True
    host, task = a_task(size, 3), a_task(size, 3).to(device)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {model}, batch {BATCH}, {size}×{size}")
    peer = max(usual_loop(host, model, device, workers, seconds) for workers in (4, 8, 12))
    rows = [("usual loop (best of 4, 8, 12 workers)", peer)]
    rows += [(f"one run, eager, {p}", eager(task, model, device, p, seconds)) for p in ("float32", "bf16")]
    for compiled in (False, True):
        word = ", compiled" if compiled else ""
        for count in (1, 4, 8, 16):
            began = time.perf_counter()
            rate = packed(task, model, device, count, "bf16", compiled, epochs=3)
            rows.append((f"{count} packed, bf16{word}", rate))
            print(
                f"  {rows[-1][0]:<40} {rate:>10,.0f} images/s ({time.perf_counter() - began:.0f} s in all)", flush=True
            )
    for name, rate in rows:
        print(f"{name:<40} {rate:>10,.0f} images/s {rate / peer:>6.1f}×")


def on_cpu(seconds: float) -> None:
    """A study's throughput here is that of one single-thread run a core; the peer has all threads and a DataLoader."""
    from torch.multiprocessing import get_context

    cores = torch.get_num_threads()
    for model, size, channels in (("cnn_small", 28, 1), ("resnet32", 32, 3)):
        task = a_task(size, channels)
        peer = max(usual_loop(task, model, torch.device("cpu"), workers, seconds) for workers in (0, cores))
        with get_context("spawn").Pool(cores) as pool:
            ours = sum(pool.starmap(_one_thread, [(model, size, channels, seconds)] * cores))
        print(
            f"{model:<10} usual loop {peer:>8,.0f} images/s, {cores} workers of ours {ours:>8,.0f}, {ours / peer:.2f}×"
        )


def _one_thread(model: str, size: int, channels: int, seconds: float) -> float:
    torch.set_num_threads(1)
    return eager(a_task(size, channels), model, torch.device("cpu"), "float32", seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="resnet32")
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    arguments = parser.parse_args()
    if torch.cuda.is_available():
        on_gpu(arguments.model, arguments.size, arguments.seconds)
    else:
        on_cpu(arguments.seconds)
