"""Images per second of wider networks in packs: norms and ReLUs each in kernels of its own, as one, or compiled.

    python benchmarks/wide.py                                  # four networks at CIFAR's shapes, on a GPU
    python benchmarks/wide.py --models resnet18 --ways fused --kernels   # and where the time of a step goes
    python benchmarks/wide.py --models resnet18 --norms batch_renorm batch_group   # with other norms

All ways in one process, medians of three epochs each, with the convolutions that cuDNN finds the fastest; "repeatable"
has those that a study takes without `--fast`. "apart" is how runs were trained before there were kernels that do a norm
and its ReLU as one. "in-turn" and "by-twos" have one stream and two for all runs of a pack, not one for each; with
"graph-each" every run has a graph of its own, so that none waits for the others before the epoch ends.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import product
from typing import Any

import torch
from engine import CUDA, a_task, make_run, packed
from torch.profiler import ProfilerActivity, profile

from equipoise.norms._then_relu import ThenRelu
from equipoise.train import Pack, Run, choose_convolutions

MODELS = {"resnet18": 100, "wrn_16_8": 100, "allcnnc": 10, "densenet_bc100_k12": 100}  # classes
KINDS = {
    "norm, ReLU": r"columns_|batch_norm|bn_|relu|clamp|threshold|_update",
    "convolution": r"conv|implicit|xmma|cutlass|cudnn|gemm|dgrad|wgrad|nhwc|sm90|sm80",
    "weights": r"Sgd|multi_tensor|foreach",
    "copies, casts, sums": r"copy|Cat|elementwise|vectorized|reduce|fill",
}


@contextmanager
def apart() -> Iterator[None]:
    """Within, a norm and the ReLU behind it are kernels of their own."""
    fused = ThenRelu.then_relu
    ThenRelu.then_relu = lambda self, x, shortcut=None: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        ThenRelu.then_relu = fused  # type: ignore[method-assign]


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


@contextmanager
def graph_each() -> Iterator[None]:
    """Within, the runs of a pack are packs of one, each replayed on a stream of its own."""
    own, alone = Pack.steps, {}  # type: ignore[var-annotated]

    def steps(self: Pack, count: int | None = None) -> None:
        if id(self) not in alone:
            alone[id(self)] = [(Pack([run]), torch.cuda.Stream()) for run in self.runs]
        main = torch.cuda.current_stream()
        for _, stream in alone[id(self)]:
            stream.wait_stream(main)
        for _ in range(self.steps_per_epoch if count is None else count):
            for pack, stream in alone[id(self)]:
                with torch.cuda.stream(stream):
                    own(pack, 1)
        for _, stream in alone[id(self)]:
            main.wait_stream(stream)

    Pack.steps = steps  # type: ignore[method-assign]
    try:
        yield
    finally:
        Pack.steps = own  # type: ignore[method-assign]


@contextmanager
def repeatable() -> Iterator[None]:
    """Within, the convolutions of a study, which come to the same numbers in every process."""
    choose_convolutions()
    try:
        yield
    finally:
        choose_convolutions(fast=True)


WAYS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "fused": nullcontext,
    "compiled": nullcontext,
    "apart": apart,
    "in-turn": partial(on_streams, 1),
    "by-twos": partial(on_streams, 2),
    "graph-each": graph_each,
    "repeatable": repeatable,
}


def rate(model: str, norm: str, classes: int, count: int, way: str) -> float:
    task = a_task(32, 3, classes).to(CUDA)
    with WAYS[way]():
        return packed(task, model, count, compiled=way == "compiled", norm=norm)[0]


def kernels(model: str, norm: str, classes: int) -> None:
    """The time of one step's kernels, by kind and the longest by name."""
    run = make_run(a_task(32, 3, classes).to(CUDA), model, CUDA, 0, "bf16", False, norm=norm)
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
    parser.add_argument("--norms", nargs="+", default=["batch"])
    parser.add_argument("--ways", nargs="+", default=["apart", "fused"], choices=WAYS)
    parser.add_argument("--counts", nargs="+", type=int, default=[1, 4], help="runs in a pack")
    parser.add_argument("--kernels", action="store_true", help="where the time of a step goes")
    asked = parser.parse_args()
    choose_convolutions(fast=True)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, batch 128, 32×32, bf16")
    for model, norm in product(asked.models, asked.norms):
        classes = MODELS.get(model, 10)
        for count in asked.counts:
            rates = {way: rate(model, norm, classes, count, way) for way in asked.ways}
            first = rates[asked.ways[0]]
            row = "  ".join(f"{way} {value:>8,.0f} ({value / first:.2f}×)" for way, value in rates.items())
            print(f"{model:<20} {norm:<12} {count:>2} packed  {row}", flush=True)
        if asked.kernels:
            kernels(model, norm, classes)


if __name__ == "__main__":
    main()
