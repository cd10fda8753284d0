"""Odd tensors at the front of the kernels in C: never a crash, never another number than PyTorch's formula.

    python benchmarks/fuzz_kernels.py                                          # 10,000 calls, some minutes
    ATEN_CPU_CAPABILITY=avx2 python benchmarks/fuzz_kernels.py                 # with the kernels for that processor
    python benchmarks/fuzz_kernels.py --only 4711                              # one call again, in this process

A call is drawn by its number: a loss or a norm with random parameters; numbers that lie in memory in some odd way, are
of some type, class or device; a way to call it (plainly, in a mode, traced, mapped, differentiated in some manner); and
PyTorch's default type and device. What comes out is compared with the plain formula in float64 on an ordinary tensor,
which never reaches a kernel. A call may raise an error only where PyTorch's own layer raises one for the same tensor in
the same way. Children do the work, so that a crash is counted, not suffered.

Tolerances: a value of float32 is off by some units in the last place of the largest number that went into it, which
for losses are logits scaled by up to 30 (2e-5 of the largest result), and for norms differences that cancel and are
then divided by a deviation (2e-4, as in the tests of the norms). Results in half precision are rounded once more.
Where two numbers that are nearly the same make a group, their deviation is known to few places: a result may then be
off by four times what the formula in PyTorch's operations, rounded likewise, is off by.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from fuzzing.subjects import Subject, drawn_loss, drawn_norm, pick
from fuzzing.tensors import DISGUISES
from fuzzing.ways import COMMON, WAYS, Function, Outcome, backward
from torch import Tensor

from equipoise import native
from equipoise.native import losses as native_losses
from equipoise.native import norms as native_norms

SEED, CALLS, CHUNK = 0, 10_000, 500


# -- one call ----------------------------------------------------------------------------------------------------------


class Call(NamedTuple):
    """Its parts by name, how it ended, and whether a kernel in C had a part in it."""

    parts: str
    ending: str
    reached: bool


FINE = ("agrees", "same shape", "PyTorch refuses too")  # how a call may end; anything else says what is wrong
DEFAULTS = ["float32"] * 5 + ["float64", "bfloat16", "float16", "meta"]
WITHOUT_NUMBERS = ("meta", "fake", "sparse")
ONCE = ("forward", "backward", "backward with a graph", "no_grad", "function mode", "dispatch mode", "autocast")
reached: Counter[str] = Counter()  # how often each kernel was called


def count_kernels() -> None:
    """From now on `reached` says which kernels were called."""
    for module in (native_losses, native_norms):
        module._kernel = _counting(module._kernel)  # type: ignore[attr-defined]


def _counting(kernel_of: Callable[[str], Callable[..., Any]]) -> Callable[[str], Callable[..., Any]]:
    def counted(name: str) -> Callable[..., Any]:
        reached[name] += 1
        return kernel_of(name)

    return counted


@contextlib.contextmanager
def defaults(name: str) -> Iterator[None]:
    if name == "meta":
        with torch.device("meta"):
            yield
        return
    torch.set_default_dtype(getattr(torch, name))
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def made(number: int, seed: int = SEED) -> Call:
    """Make the call of this number and judge it."""
    rng = np.random.default_rng([seed, number])
    torch.manual_seed(number)
    subject = drawn_loss(rng) if rng.integers(2) else drawn_norm(rng)
    disguise, default = pick(rng, DISGUISES), pick(rng, DEFAULTS)
    way = pick(rng, COMMON) if rng.integers(2) else pick(rng, WAYS)
    parts = f"{subject.name} {tuple(subject.x.shape)}, {disguise}, {way}, default {default}"
    x = DISGUISES[disguise](subject.x)
    numbers = subject.x if disguise in WITHOUT_NUMBERS else x.detach().as_subclass(Tensor)
    weights = torch.from_numpy(rng.uniform(0.5, 2, max(1, x.numel())))
    exact = backward(subject.exact, numbers.double().clone(), weights)
    before = reached.total()
    try:
        with defaults(default):
            found = WAYS[way](subject.ours, x, weights)
    except Exception:
        ending = _refusal(subject, way, x, weights, default, traceback.format_exc(limit=-4))
        return Call(parts, ending, reached.total() > before)
    if disguise in WITHOUT_NUMBERS:  # even where PyTorch, asked for gradients in a batch, makes up some
        found = Outcome(*(t if t is None else t.to("meta") for t in found))
    in_c = reached.total() > before
    return Call(parts, _judged(subject, found, exact, way, Rounded(subject.plain, numbers, weights, exact)), in_c)


def _refusal(subject: Subject, way: str, x: Tensor, weights: Tensor, default: str, error: str) -> str:
    """Whether PyTorch's own layer raises an error for this as well."""
    try:
        with defaults(default):
            WAYS[way](subject.pytorchs, x, weights)
    except Exception:
        return "PyTorch refuses too"
    return f"an error where PyTorch has none: {error}"


class Rounded(NamedTuple):
    """The formula in PyTorch's operations for the numbers as they are, beside the exact outcome."""

    plain: Function
    numbers: Tensor
    weights: Tensor
    exact: Outcome

    def error(self, what: str) -> float:
        library, native.library = native.library, lambda: None
        try:
            outcome = backward(self.plain, self.numbers.clone(), self.weights)
        finally:
            native.library = library
        return float((getattr(outcome, what).double() - getattr(self.exact, what)).abs().max())


def _judged(subject: Subject, found: Outcome, exact: Outcome, way: str, rounded: Rounded) -> str:
    pairs = []
    if way in ONCE and _has_numbers(found.value):
        pairs += [("buffer", *both) for both in subject.state()]
    pairs.append(("value", found.value, exact.value))
    if found.slope is not None and exact.slope is not None:
        pairs.append(("slope", found.slope, exact.slope))
    for what, a, b in pairs:
        if a.shape != b.shape:
            return f"{what} of shape {tuple(a.shape)} instead of {tuple(b.shape)}"
        if _has_numbers(a):
            tolerance = subject.rounding[a.dtype]
            a, b = a.detach().as_subclass(Tensor).double(), b.detach().double()
            largest = max(1.0, float(b.nan_to_num().abs().max())) if b.numel() else 1.0
            if torch.allclose(a, b, rtol=0, atol=tolerance * largest, equal_nan=True):
                continue
            if what == "buffer" or not torch.allclose(a, b, rtol=0, atol=4 * rounded.error(what), equal_nan=True):
                return f"{what} is off by {float((a - b).abs().max()):.3g}, where the largest is {largest:.3g}"
    return "agrees" if _has_numbers(found.value) else "same shape"


def _has_numbers(x: Tensor) -> bool:
    fake = isinstance(x, torch._subclasses.FakeTensor)
    return x.is_cpu and not fake and x.layout is torch.strided


# -- many calls, in children -------------------------------------------------------------------------------------------


def child(first: int, last: int, seed: int, log: Path) -> None:
    """Make calls, writing down before each that it begins and after it how it ended."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    count_kernels()
    with log.open("a") as file:
        for number in range(first, last):
            print(json.dumps([number]), file=file, flush=True)
            call = made(number, seed)
            print(json.dumps([number, *call]), file=file, flush=True)


def fuzz(calls: int, seed: int = SEED) -> tuple[Counter[str], list[str]]:
    """Endings by name, those that reached a kernel apart; and what was wrong."""
    endings: Counter[str] = Counter()
    wrong: list[str] = []
    first = 0
    while first < calls:
        last = min(first + CHUNK, calls)
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"
            command = [sys.executable, __file__, "--child", str(first), str(last), "--seed", str(seed), "--log", log]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            lines = [json.loads(line) for line in log.read_text().splitlines()]
        for number, parts, ending, in_c in (line for line in lines if len(line) > 1):
            endings[ending if ending in FINE else "wrong"] += 1
            endings["reached a kernel"] += in_c
            if ending not in FINE:
                wrong.append(f"call {number}: {parts}: {ending}")
        first = last
        if done.returncode:
            first = lines[-1][0] + 1
            endings["crashed"] += 1
            wrong.append(f"call {first - 1}: exit code {done.returncode}\n{done.stderr[-1500:]}")
    return endings, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", type=int, metavar="CALL", help="make this call alone, in this process")
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child, options.seed, options.log)
        return
    if options.only is not None:
        count_kernels()
        print(made(options.only, options.seed), dict(reached))
        return
    library = native.library()
    print(f"torch {torch.__version__}, {Path(library._name).name.partition('.')[0] if library else 'no kernels'}")
    endings, wrong = fuzz(options.calls, options.seed)
    for name in (*FINE, "reached a kernel", "wrong", "crashed"):
        print(f"{endings[name]:6d} {name}")
    for line in wrong:
        print(line)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
