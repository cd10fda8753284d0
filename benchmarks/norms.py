"""Time of our norms as a multiple of `torch.nn.BatchNorm2d` on the same tensors, measured side by side.

python benchmarks/norms.py           # CPU with 2 threads, and the GPU if there is one
python benchmarks/norms.py --shared  # CPU with 1 thread, in processor time: for a machine with other work on it
python benchmarks/norms.py --gpu     # the GPU alone: forward and backward in replays of a CUDA graph

Training is forward and backward. In each of many rounds every norm has its turn; columns are medians over the rounds of
its time divided by batch norm's.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from operator import truediv

import torch
from torch import Tensor, nn

from equipoise.models import create_model
from equipoise.norms import (
    BatchGroupNorm2d,
    BatchNorm2d,
    BatchRenorm2d,
    GhostBatchNorm2d,
    GroupNorm2d,
    set_example_weight,
    tune_example_weight,
)

RunTimes = Callable[[], float]
LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
GPU_SHAPES = ((128, 64, 56, 56), (128, 256, 28, 28), (128, 512, 7, 7), (128, 16, 32, 32))
CPU_SHAPES = ((32, 64, 56, 56), (32, 256, 28, 28), (128, 512, 7, 7), (128, 16, 32, 32), (128, 64, 8, 8))


def training_norms(channels: int) -> dict[str, nn.Module]:
    return {
        "stock": nn.BatchNorm2d(channels),
        "batch": BatchNorm2d(channels),
        "ghost 16": GhostBatchNorm2d(channels, 16),
        "ghost 32": GhostBatchNorm2d(channels, 32),
        "batch_group": BatchGroupNorm2d(channels, 8),
        "group": GroupNorm2d(channels, 8),
        "renorm": BatchRenorm2d(channels, warmup=0),
    }


def inference_norms(channels: int) -> dict[str, nn.Module]:
    norms = {
        "stock": nn.BatchNorm2d(channels),
        "ghost": GhostBatchNorm2d(channels, 16),
        "weighed": nn.BatchNorm2d(channels),
        "batch_group weighed": BatchGroupNorm2d(channels, 8),
    }
    for name, norm in norms.items():
        if "weighed" in name:
            set_example_weight(norm, 0.1)
    return {name: norm.eval() for name, norm in norms.items()}


def step(norm: nn.Module, x: Tensor, grad: Tensor) -> Callable[[], None]:
    def run() -> None:
        x.grad = None
        for parameter in norm.parameters():
            parameter.grad = None
        norm(x).backward(grad)

    return run


def show(title: str, times: dict[str, list[float]]) -> None:
    """`times` are those of the same rounds for each norm."""
    stock = times.pop("stock")
    ratios = {name: statistics.median(map(truediv, seconds, stock)) for name, seconds in times.items()}
    columns = "  ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    print(f"{title:62s} batch norm {statistics.median(stock) * 1e6:9.1f} µs | {columns}", flush=True)


# -- CPU -------------------------------------------------------------------------------------------------------------


def keep_memory() -> None:
    """Tell malloc to keep what is freed: else page faults, which strike at random, are half of what is measured."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        for option in (-1, -3):  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
            libc.mallopt(option, 2**30)


def timed(calls: dict[str, Callable[[], object]], clock: RunTimes, seconds: float = 3.0) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    end = clock() + seconds
    while clock() < end or len(times["stock"]) < 15:
        for name, call in calls.items():
            start = clock()
            call()
            times[name].append(clock() - start)
    return times


def cpu(threads: int, clock: RunTimes) -> None:
    torch.set_num_threads(threads)
    keep_memory()
    for shape in CPU_SHAPES:
        for layout, memory_format in LAYOUTS.items():
            x = torch.randn(shape).contiguous(memory_format=memory_format).requires_grad_()
            grad = torch.randn_like(x)
            norms = training_norms(shape[1])
            show(f"cpu training {shape} {layout}", timed({k: step(m, x, grad) for k, m in norms.items()}, clock))
            with torch.no_grad():
                norms = inference_norms(shape[1])
                show(f"cpu inference {shape} {layout}", timed({k: partial(m, x) for k, m in norms.items()}, clock))
    networks(clock)


@torch.no_grad()
def networks(clock: RunTimes) -> None:
    """Example weighing of whole networks, and what it costs to tune it, in passes over the data."""
    x = torch.randn(32, 3, 32, 32)
    for model in ("resnet32", "resnet18"):
        plain, weighed = (create_model(model, num_classes=10).eval() for _ in range(2))
        set_example_weight(weighed, 0.1)
        times = timed({"stock": partial(plain, x), "weighed": partial(weighed, x)}, clock)
        usual = statistics.median(times["stock"])
        show(f"cpu inference of {model}, 32 images", times)
        start = clock()
        tune_example_weight(plain, [(x, torch.zeros(32, dtype=torch.int64))], progress=None)
        passes = (clock() - start) / usual
        print(f"tuning the example weight of {model} over 22 values: {passes:.1f} passes of usual inference")


# -- GPU -------------------------------------------------------------------------------------------------------------


def graph_of(call: Callable[[], object], repeats: int = 20) -> torch.cuda.CUDAGraph:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            call()
    return graph


def replayed(calls: dict[str, Callable[[], object]], rounds: int = 25, repeats: int = 20) -> dict[str, list[float]]:
    graphs = {name: graph_of(call, repeats) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for _ in range(rounds):
        for name, graph in graphs.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times[name].append(start.elapsed_time(end) / 1000 / repeats)
    return times


def gpu() -> None:
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    for dtype in (torch.bfloat16, torch.float32):
        for shape in GPU_SHAPES:
            for layout, memory_format in LAYOUTS.items():
                x = torch.randn(shape, device="cuda").to(dtype).contiguous(memory_format=memory_format).requires_grad_()
                grad = torch.randn_like(x)
                title = f"{str(dtype)[6:]} {shape} {layout}"
                norms = {name: norm.cuda() for name, norm in training_norms(shape[1]).items()}
                show(f"gpu training {title}", replayed({k: step(m, x, grad) for k, m in norms.items()}))
                with torch.no_grad():
                    norms = {name: norm.cuda() for name, norm in inference_norms(shape[1]).items()}
                    show(f"gpu inference {title}", replayed({k: partial(m, x) for k, m in norms.items()}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true", help="leave out the CPU")
    parser.add_argument("--shared", action="store_true", help="one thread and processor time on the CPU")
    arguments = parser.parse_args()
    if arguments.shared:
        cpu(1, time.thread_time)
    elif not arguments.gpu:
        cpu(2, time.perf_counter)
    if torch.cuda.is_available():
        gpu()
