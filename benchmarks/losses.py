"""Time of each loss, forward and backward, against PyTorch's own: prints a Markdown page.

    python benchmarks/losses.py                       # two threads of a CPU
    python benchmarks/losses.py --device cuda --batch 256 8192
    python benchmarks/losses.py --compile

Each loss takes turns with its baseline, so that both meet the same machine: softmax losses and the squared error with
`F.cross_entropy`, sigmoid losses with `F.binary_cross_entropy_with_logits`, whose one-hot targets are ready-made. The
losses are called as a user calls them, checks of the arguments included. The first row is `F.cross_entropy` against
itself: how far it is from 1 is how far the others can be trusted.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from equipoise import core

Step = Callable[[], None]


def step(loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, target: Tensor) -> Step:
    """One forward and backward pass."""

    def run() -> None:
        logits.grad = None
        loss(logits, target).backward()

    return run


def seconds(run: Step, device: str) -> float:
    """Wall time of one call; on a GPU until the device is done."""
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def side_by_side(baseline: Step, candidate: Step, device: str, repeats: int) -> tuple[float, float]:
    """Median seconds of each, measured in turns after a warm-up."""
    for _ in range(5):
        baseline()
        candidate()
    times = [(seconds(baseline, device), seconds(candidate, device)) for _ in range(repeats)]
    first, second = zip(*times, strict=True)
    return statistics.median(first), statistics.median(second)


def copy_bandwidth(device: str) -> float:
    """Bytes a second of a copy of 256 MiB, read and written."""
    source = torch.ones(2**26, device=device)
    target = torch.empty_like(source)

    def copy() -> None:
        target.copy_(source)

    times = [seconds(copy, device) for _ in range(20)]
    return 2 * source.nbytes / statistics.median(times[5:])


def settle_allocator() -> None:
    """Free one large block, so that glibc keeps freed memory, as it does in a process that has trained for a while.

    Otherwise it returns memory to the system at some calls and not at others, and the page faults of getting it back
    are timed: cross-entropy against itself came out at 0.24.
    """
    torch.ones(31 * 2**18)


def compare(card: core.Card | None, batch: int, classes: int, options: argparse.Namespace) -> tuple[float, float]:
    """Median seconds of the baseline and of the loss; of the baseline twice where there is no card."""
    torch.manual_seed(0)
    device = options.device
    # between -1 and 1, as the cosines that LDAM expects: scaled by 30, wider logits would underflow and time that
    logits = (2 * torch.rand(batch, classes, device=device) - 1).requires_grad_()
    target = torch.randint(0, classes, (batch,), device=device)
    loss: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy
    baseline: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy
    if card is not None:
        facts = {"class_counts": torch.randint(1, 500, (classes,))} if card.facts else {}
        loss = card.factory(**facts).to(device)
    if card is not None and card.name.startswith("sigmoid"):
        one_hot = F.one_hot(target, classes).float()

        def baseline(logits: Tensor, target: Tensor) -> Tensor:
            return F.binary_cross_entropy_with_logits(logits, one_hot)

    if options.compile:
        torch.compiler.reset()
        loss, baseline = torch.compile(loss), torch.compile(baseline)
    repeats = max(30, int(options.work / (batch * classes)))
    return side_by_side(step(baseline, logits, target), step(loss, logits, target), device, min(repeats, 2000))


def machine(device: str) -> str:
    """What the numbers were measured on."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {torch.get_num_threads()} threads"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--compile", action="store_true", help="compile loss and baseline with torch.compile")
    parser.add_argument("--threads", type=int, default=2, help="threads of the CPU")
    parser.add_argument("--batch", type=int, nargs="+", default=[256])
    parser.add_argument("--classes", type=int, nargs="+", default=[10, 1000, 8142])
    parser.add_argument("--work", type=float, default=1e8, help="logits to go through for each loss and size")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    sizes = [(batch, classes) for batch in options.batch for classes in options.classes]
    mode = "compiled" if options.compile else "eager"
    print(f"# Losses: forward and backward on {options.device}, {mode}\n")
    print(f"{datetime.date.today()}, {machine(options.device)}, torch {torch.__version__}, float32.\n")
    print("Each cell: time in µs, and how many times the baseline's it is, measured in turns (medians).")
    bandwidth = copy_bandwidth(options.device) if options.device == "cuda" else None
    if bandwidth:
        print(f"Then GB/s: logits read once and gradient written once; a copy reaches {bandwidth / 1e9:.0f} GB/s.")
    print(f"\n| loss | {' | '.join(f'N={batch}, C={classes}' for batch, classes in sizes)} |")
    print("|---|" + "---:|" * len(sizes))
    settle_allocator()
    for card in [None, *core.cards("loss")]:
        cells = []
        for batch, classes in sizes:
            baseline, candidate = compare(card, batch, classes, options)
            cell = f"{candidate * 1e6:.0f} · {candidate / baseline:.2f}×"
            cells.append(cell + (f" · {8 * batch * classes / candidate / 1e9:.0f}" if bandwidth else ""))
        name = card.name if card else "*baseline against itself*"
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
