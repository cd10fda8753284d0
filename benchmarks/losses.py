"""Time of each loss, forward and backward, against PyTorch's own: prints a Markdown page.

    python benchmarks/losses.py                                          # two threads of a CPU, about two minutes
    python benchmarks/losses.py --device cuda --mode eager compiled      # about 100 s, most of it the compiler's
    python benchmarks/losses.py --device cuda --batch 8192 --classes 8142  # large enough for memory to be the limit
    python benchmarks/losses.py --busy --threads 1 --classes 10          # where others work on the CPU as well

Softmax losses and the squared error are compared with `F.cross_entropy`, sigmoid losses with
`F.binary_cross_entropy_with_logits`, whose one-hot targets are ready-made. The losses are called as a user calls them,
checks of the arguments included.

A machine with other work on it is fast in one moment and slow in the next. So the loss and its baseline take turns in
short blocks, each block of the one next to a block of the other; on a CPU a block counts with its fastest call, which
had the machine to itself, on a GPU with the mean of its calls; and the ratio is the median of those of the pairs. The
first row is `F.cross_entropy` against itself: how far it is from 1 is how far the others can be trusted.

On a CPU with far more to do than it has cores most blocks are interrupted, and a second thread waits for its turn. With
`--busy` the two take turns call by call, and the fastest hundredth of each is compared; give `--threads 1` with it.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import torch
import torch._dynamo
import torch.nn.functional as F
from torch import Tensor

from equipoise import core

Step = Callable[[], None]
BLOCK = 4e-3  # seconds


def step(loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, target: Tensor) -> Step:
    """One forward and backward pass."""

    def run() -> None:
        logits.grad = None
        loss(logits, target).backward()

    return run


def block(run: Step, device: str) -> float:
    """Seconds of a call among those of a short while: the fastest on a CPU; on a GPU, which runs behind, their mean."""
    times, start = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - start < BLOCK:
        before = time.perf_counter()
        run()
        times.append(time.perf_counter() - before)
    if device == "cpu":
        return min(times)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / len(times)


def side_by_side(baseline: Step, candidate: Step, device: str, budget: float) -> tuple[float, float]:
    """Median seconds of a call of `candidate`, and the median of its ratios to the `baseline` beside it."""
    for run in (baseline, candidate):
        block(run, device)
    times, ratios, end = [], [], time.perf_counter() + budget
    while time.perf_counter() < end or len(times) < 9:
        if len(times) % 2:  # neither is always the first
            own, other = block(candidate, device), block(baseline, device)
        else:
            other, own = block(baseline, device), block(candidate, device)
        times.append(own)
        ratios.append(own / other)
    return statistics.median(times), statistics.median(ratios)


def fastest_calls(baseline: Step, candidate: Step, budget: float) -> tuple[float, float]:
    """Seconds below which a hundredth of the calls of `candidate` stay, and its ratio to that of the `baseline`."""
    times: dict[Step, list[float]] = {baseline: [], candidate: []}
    end = time.perf_counter() + budget
    while time.perf_counter() < end:
        for run, own in times.items():
            run()  # the one before has left its own code and numbers in the caches
            for _ in range(4):
                before = time.perf_counter()
                run()
                own.append(time.perf_counter() - before)
    fast = {run: sorted(own)[len(own) // 100] for run, own in times.items()}
    return fast[candidate], fast[candidate] / fast[baseline]


def copy_bandwidth(device: str) -> float:
    """Bytes a second of a copy of 256 MiB, read and written."""
    source = torch.ones(2**26, device=device)
    target = torch.empty_like(source)

    def copy() -> None:
        target.copy_(source)

    times = [block(copy, device) for _ in range(20)]
    return 2 * source.nbytes / statistics.median(times[5:])


def settle_allocator() -> None:
    """Free one large block, so that glibc keeps freed memory, as it does in a process that has trained for a while.

    Otherwise it returns memory to the system at some calls and not at others, and the page faults of getting it back
    are timed: cross-entropy against itself came out at 0.24.
    """
    torch.ones(31 * 2**18)


@cache
def batch_of(size: int, classes: int, device: str) -> tuple[Tensor, Tensor]:
    """Logits and labels, the same ones for all losses."""
    generator = torch.Generator().manual_seed(0)
    # between -1 and 1, as the cosines that LDAM expects: scaled by 30, wider logits would underflow and time that
    logits = 2 * torch.rand(size, classes, generator=generator) - 1
    target = torch.randint(0, classes, (size,), generator=generator)
    return logits.to(device).requires_grad_(), target.to(device)


@cache
def baseline_step(sigmoid: bool, size: int, classes: int, device: str, mode: str) -> Step:
    """PyTorch's own loss; compiled once for each size."""
    logits, target = batch_of(size, classes, device)
    one_hot = F.one_hot(target, classes).float()

    def binary(logits: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(logits, one_hot)

    return step(in_mode(mode, binary if sigmoid else F.cross_entropy), logits, target)


def in_mode(mode: str, loss: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    # sizes are compiled one by one, as they are in training, where a run has one only
    return torch.compile(loss, dynamic=False) if mode == "compiled" else loss


def measured(card: core.Card | None, size: int, classes: int, mode: str, options: argparse.Namespace) -> str:
    """One cell of the table: microseconds, ratio and, on a GPU, the share of a copy's bandwidth."""
    device = options.device
    logits, target = batch_of(size, classes, device)
    baseline = baseline_step(card is not None and card.name.startswith("sigmoid"), size, classes, device, mode)
    candidate = baseline
    if card is not None:
        generator = torch.Generator().manual_seed(0)
        facts = {"class_counts": torch.randint(1, 500, (classes,), generator=generator)} if card.facts else {}
        candidate = step(in_mode(mode, card.factory(**facts).to(device)), logits, target)
    if options.busy:
        own, ratio = fastest_calls(baseline, candidate, options.seconds)
    else:
        own, ratio = side_by_side(baseline, candidate, device, options.seconds)
    cell = f"{own * 1e6:.0f} · {ratio:.2f}×"
    if options.bandwidth is None:
        return cell
    return f"{cell} · {2 * logits.nbytes / own / options.bandwidth:.1%}"


def machine(device: str) -> str:
    """What the numbers were measured on."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {torch.get_num_threads()} threads"


def page(options: argparse.Namespace) -> Iterator[str]:
    """The lines of the page, each as soon as it is measured."""
    yield f"# Losses: forward and backward on {options.device}\n"
    yield f"{datetime.date.today()}, {machine(options.device)}, torch {torch.__version__}, float32.\n"
    how = "the fastest hundredth of calls in turns" if options.busy else "medians over pairs of short blocks"
    yield f"Each cell: time in µs and how many times the baseline's it is ({how})."
    if options.bandwidth:
        yield (
            "Then the share of a copy's bandwidth, where logits are read once and the gradient is written once; a copy "
            f"reaches {options.bandwidth / 1e9:.0f} GB/s."
        )
    sizes = [(size, classes) for size in options.batch for classes in options.classes]
    for mode in options.mode:
        yield f"\n## {mode.capitalize()}\n"
        yield f"| loss | {' | '.join(f'N={size}, C={classes}' for size, classes in sizes)} |"
        yield "|---|" + "---:|" * len(sizes)
        for card in [None, *core.cards("loss")]:
            if card and options.only and card.name not in options.only:
                continue
            cells = [measured(card, size, classes, mode, options) for size, classes in sizes]
            yield f"| {card.name if card else '*baseline against itself*'} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--mode", nargs="+", choices=["eager", "compiled"], default=["eager"])
    parser.add_argument("--threads", type=int, default=2, help="threads of the CPU")
    parser.add_argument("--batch", type=int, nargs="+", default=[256])
    parser.add_argument("--classes", type=int, nargs="+", default=[10, 1000, 8142])
    parser.add_argument("--only", nargs="+", metavar="LOSS", help="these losses only")
    parser.add_argument("--busy", action="store_true", help="the CPU has other work: compare the fastest calls")
    parser.add_argument("--seconds", type=float, help="for each cell; 3 on a CPU and 0.3 on a GPU unless given")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    options.seconds = options.seconds or (0.3 if on_gpu else 3.0)
    options.bandwidth = copy_bandwidth("cuda") if on_gpu else None
    torch.set_num_threads(options.threads)
    torch._dynamo.config.recompile_limit = 1000  # all losses share one `forward`, and each size is compiled anew
    settle_allocator()
    for line in page(options):
        print(line, flush=True)


if __name__ == "__main__":
    main()
