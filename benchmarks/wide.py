"""Images per second of wider networks in packs: norms and ReLUs each in kernels of its own, as one, or compiled.

    python benchmarks/wide.py                                  # four networks at CIFAR's shapes, on a GPU
    python benchmarks/wide.py --models resnet18 --ways fused --kernels   # and where the time of a step goes

All ways in one process, medians of three epochs each. "apart" is how runs were trained before there were kernels that
do a norm and its ReLU as one; "in-turn" and "by-twos" have one stream and two for all runs of a pack, not one for each.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from engine import CUDA, a_task, make_run, packed
from torch.profiler import ProfilerActivity, profile

from equipoise.norms import BatchNorm2d
from equipoise.train import Pack, Run

MODELS = {"resnet18": 100, "wrn_16_8": 100, "allcnnc": 10, "densenet_bc100_k12": 100}  # classes
STREAMS = {"in-turn": 1, "by-twos": 2}
KINDS = {
    "norm, ReLU": r"columns_|batch_norm|bn_|relu|clamp|threshold|_update",
    "convolution": r"conv|implicit|xmma|cutlass|cudnn|gemm|dgrad|wgrad|nhwc|sm90|sm80",
    "weights": r"Sgd|multi_tensor|foreach",
    "copies, casts, sums": r"copy|Cat|elementwise|vectorized|reduce|fill",
}


@contextmanager
def apart() -> Iterator[None]:
    """Within, a norm and the ReLU behind it are kernels of their own."""
    fused = BatchNorm2d.then_relu
    BatchNorm2d.then_relu = lambda self, x, shortcut=None: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        BatchNorm2d.then_relu = fused  # type: ignore[method-assign]


@contextmanager
def on_streams(count: int) -> Iterator[None]:
    """Within, the runs of a pack share so many streams."""
    own = Pack._side_by_side

    def shared(self: Pack, work: Callable[[Run], Any], runs: Sequence[Run]) -> list[Any]:
        main, results = torch.cuda.current_stream(), []
        streams = list(self.streams.values())[:count]
        for stream in streams:
            stream.wait_stream(main)
        for i, run in enumerate(runs):
            with torch.cuda.stream(streams[i % count]):
                results.append(work(run))
        for stream in streams:
            main.wait_stream(stream)
        return results

    Pack._side_by_side = shared  # type: ignore[method-assign]
    try:
        yield
    finally:
        Pack._side_by_side = own  # type: ignore[method-assign]


def rate(model: str, classes: int, count: int, way: str) -> float:
    task = a_task(32, 3, classes).to(CUDA)
    with ExitStack() as within:
        if way == "apart":
            within.enter_context(apart())
        if way in STREAMS:
            within.enter_context(on_streams(STREAMS[way]))
        return packed(task, model, count, compiled=way == "compiled")[0]


def kernels(model: str, classes: int) -> None:
    """The time of one step's kernels, by kind and the longest by name."""
    run = make_run(a_task(32, 3, classes).to(CUDA), model, CUDA, 0, "bf16", False)
    run.begin_epoch(0)
    for _ in range(5):
        run.step()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        run.step()
        torch.cuda.synchronize()
    spent: dict[str, float] = defaultdict(float)
    events = [e for e in profiled.key_averages() if e.self_device_time_total > 0]
    for event in events:
        kind = next((k for k, pattern in KINDS.items() if re.search(pattern, event.key)), "other")
        spent[kind] += event.self_device_time_total
    total = sum(spent.values())
    most_first = sorted(spent.items(), key=lambda item: -item[1])
    parts = ", ".join(f"{kind} {100 * value / total:.0f} %" for kind, value in most_first)
    print(f"{model}: {total / 1000:.2f} ms of kernels in a step, {sum(e.count for e in events)} launches: {parts}")
    for event in sorted(events, key=lambda e: -e.self_device_time_total)[:12]:
        print(f"    {event.self_device_time_total:8.0f} µs  {event.count:4d} ×  {event.key[:110]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument(
        "--ways", nargs="+", default=["apart", "fused"], choices=["apart", "fused", "compiled", *STREAMS]
    )
    parser.add_argument("--counts", nargs="+", type=int, default=[1, 4], help="runs in a pack")
    parser.add_argument("--kernels", action="store_true", help="where the time of a step goes")
    asked = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, batch 128, 32×32, bf16")
    for model in asked.models:
        classes = MODELS.get(model, 10)
        for count in asked.counts:
            rates = {way: rate(model, classes, count, way) for way in asked.ways}
            first = rates[asked.ways[0]]
            row = "  ".join(f"{way} {value:>8,.0f} ({value / first:.2f}×)" for way, value in rates.items())
            print(f"{model:<20} {count:>2} packed  {row}", flush=True)
        if asked.kernels:
            kernels(model, classes)


if __name__ == "__main__":
    main()
