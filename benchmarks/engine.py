"""Images per second of training: our runs, alone and packed, beside a loop as people write it. One process, medians.

python benchmarks/engine.py                    # what this machine has: GPU if there is one, else CPU
python benchmarks/engine.py --model resnet18 --classes 100
python benchmarks/engine.py --growth           # how the cost grows with runs, batch size, classes, image size (GPU)
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from usual import BATCH, usual_loop

from equipoise.data import Split, Task, long_tailed_counts
from equipoise.train import Fitting, Pack, Recipe, Run, fit_pack

CUDA = torch.device("cuda")


def a_task(size: int, channels: int, num_classes: int = 10, images: int = 12406) -> Task:
    """Random images with the imbalance of CIFAR-10-LT at ratio 100: speed does not depend on what they show."""
    generator = torch.Generator().manual_seed(0)
    shares = torch.tensor(long_tailed_counts(num_classes, 5000, 100)).double()
    labels = torch.arange(num_classes).repeat_interleave((shares / shares.sum() * images).ceil().long())
    pixels = torch.randint(0, 256, (len(labels), channels, size, size), dtype=torch.uint8, generator=generator)
    few = Split(pixels[:256], labels[:256])
    return Task("random", Split(pixels, labels), few, few, tuple(map(str, range(num_classes))), "")


def peer(task: Task, model: str, device: torch.device, workers: tuple[int, ...], seconds: float) -> float:
    """The best of the usual loop's worker counts."""
    train = task.train
    return max(
        usual_loop(train.images, train.labels, task.num_classes, model, device, count, seconds) for count in workers
    )


def make_run(
    task: Task,
    model: str,
    device: torch.device,
    seed: int,
    precision: str,
    compiled: bool,
    batch: int = BATCH,
    norm: str = "batch",
) -> Run:
    methods = [{}, {"loss": "focal"}, {"loss": "ldam"}, {"mix": "mfw"}, {"weighting": "effective_number(start=0.8)"}]
    common = {"model": model, "norm": norm, "precision": precision, "augment": "crop_flip", "batch_size": batch}
    options = {**common, **methods[seed % len(methods)]}
    run = Run(Recipe.make(options, {"name": "blobs"}, seed), task, device)
    if compiled:
        run.compile()
    return run


def packed(
    task: Task,
    model: str,
    count: int,
    *,
    precision: str = "bf16",
    compiled: bool = False,
    batch: int = BATCH,
    norm: str = "batch",
) -> tuple[float, float]:
    """Images per second in all of `count` runs of different methods in one captured graph (the median of three epochs),
    and the seconds until the first captured step."""
    began = time.perf_counter()
    pack = Pack([make_run(task, model, CUDA, seed, precision, compiled, batch, norm) for seed in range(count)])
    for run in pack.runs:
        run.begin_epoch(0)
    pack.steps(4)
    torch.cuda.synchronize()
    start_up, rates = time.perf_counter() - began, []
    for epoch in range(1, 4):
        for run in pack.runs:
            run.begin_epoch(epoch)
        torch.cuda.synchronize()
        began = time.perf_counter()
        pack.steps()
        torch.cuda.synchronize()
        rates.append(count * pack.steps_per_epoch * batch / (time.perf_counter() - began))
    return statistics.median(rates), start_up


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
        for _ in range(2 if device.type == "cpu" else 10):
            run.done.remainder_(run.steps_per_epoch)  # stay inside the epoch
            run.step()
            steps += 1
        wait()
    return steps * BATCH / (time.perf_counter() - began)


def on_gpu(
    model: str, size: int, classes: int, counts: tuple[int, ...], seconds: float, compiled_too: bool = False
) -> None:
    host = a_task(size, 3, classes)
    task = host.to(CUDA)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {model}, batch {BATCH}, {size}×{size}")
    usual = peer(host, model, CUDA, (4, 8, 12), seconds)
    _row("usual loop (best of 4, 8, 12 workers)", usual, usual)
    for precision in ("float32", "bf16"):
        _row(f"one run, eager, {precision}", eager(task, model, CUDA, precision, seconds), usual)
    for compiled in (False, True) if compiled_too else (False,):
        for count in counts:
            rate, start_up = packed(task, model, count, compiled=compiled)
            name = f"{count} packed, bf16{', compiled' if compiled else ''}"
            _row(name, rate, usual, f"first captured step after {start_up:.1f} s")


def _row(name: str, rate: float, usual: float, note: str = "") -> None:
    print(f"{name:<40} {rate:>10,.0f} images/s {rate / usual:>6.1f}×  {note}", flush=True)


def growth(model: str) -> None:
    """Eight packed runs, not compiled, one thing changed at a time."""
    task = a_task(32, 3).to(CUDA)
    for count in (1, 2, 4, 8, 12, 16):
        print(f"runs {count:<5} {packed(task, model, count)[0]:>10,.0f} images/s", flush=True)
    for batch in (32, 64, 128, 256, 512):
        print(f"batch {batch:<4} {packed(task, model, 8, batch=batch)[0]:>10,.0f} images/s", flush=True)
    for classes in (10, 100, 1000):
        print(
            f"classes {classes:<6} {packed(a_task(32, 3, classes).to(CUDA), model, 8)[0]:>6,.0f} images/s", flush=True
        )
    for size in (16, 32, 64):
        print(
            f"size {size:<5} {packed(a_task(size, 3, images=4096).to(CUDA), model, 8)[0]:>10,.0f} images/s", flush=True
        )


def memory(epochs: int = 500) -> None:
    """Memory of a pack of two after 50 and after `epochs` epochs, validation included."""
    task, marks = a_task(32, 3, images=512).to(CUDA), []
    runs = [
        Run(Recipe.make({"model": "cnn_small", "epochs": epochs}, {"name": "blobs"}, s), task, CUDA) for s in (0, 1)
    ]

    def mark(member: int, epoch: int, curves: dict[str, list[float]]) -> None:
        if member == 1 and epoch in (50, epochs):
            marks.append((torch.cuda.memory_allocated(), torch.cuda.memory_reserved()))

    fit_pack([Fitting(run, lambda logits, labels: {"mean": float(logits.mean())}) for run in runs], on_epoch=mark)
    print(f"allocated and reserved bytes after 50 epochs {marks[0]}, after {epochs} {marks[1]}")


def on_cpu(seconds: float) -> None:
    """A study's throughput here is that of one single-thread run a core; the peer has all threads and a DataLoader."""
    from torch.multiprocessing import get_context

    cores = torch.get_num_threads()
    for model, size, channels in (("cnn_small", 28, 1), ("resnet32", 32, 3)):
        ratios, cpu = [], torch.device("cpu")
        for _ in range(3):
            usual = peer(a_task(size, channels), model, cpu, (0, cores), seconds)
            with get_context("spawn").Pool(cores) as pool:
                ours = sum(pool.starmap(_one_thread, [(model, size, channels, seconds)] * cores))
            ratios.append(ours / usual)
            print(f"{model:<10} usual loop {usual:>8,.0f} images/s, {cores} workers {ours:>8,.0f}, {ratios[-1]:.2f}×")
        print(f"{model:<10} median of {len(ratios)} ratios {statistics.median(ratios):.2f}×", flush=True)


def _one_thread(model: str, size: int, channels: int, seconds: float) -> float:
    from equipoise.study.run.child import keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()  # as a study's workers do
    return eager(a_task(size, channels), model, torch.device("cpu"), "float32", seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="resnet32")
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 8, 16], help="sizes of packs")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--compiled", action="store_true", help="packs that PyTorch compiled, too")
    parser.add_argument("--growth", action="store_true")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        on_cpu(arguments.seconds)
    else:
        torch.backends.cudnn.benchmark = True
        if arguments.growth:
            growth(arguments.model)
            memory()
        else:
            counts = tuple(arguments.counts)
            on_gpu(arguments.model, arguments.size, arguments.classes, counts, arguments.seconds, arguments.compiled)
