"""Whether this CPU can compute in bf16, and how fast: tried out once, in a process that may die of it.

Some machines announce instructions (AMX) that the system does not let programs use. PyTorch believes the announcement,
and the first bf16 product kills the process. Others have no instructions for it and are slow. What was found is kept in
the user's cache folder.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache

import torch

from ...core import EquipoiseError
from ...train import Recipe
from .machine import remembered
from .trouble import end_of

VARIABLE = "ONEDNN_MAX_CPU_ISA"
# instruction sets to allow at most, the best first; AMX is above them all
SETS = ("AVX512_CORE_FP16", "AVX512_CORE_BF16", "AVX512_CORE", "AVX2")
SECONDS = 120  # more than any machine needs to import PyTorch
SLOWER = 1.1  # times as long, from which on it is worth a word

# what a step does in bf16: convolutions in both layouts and products of large and small matrices, with their gradients
PROBE = """
import torch
from torch import nn
torch.set_num_threads(1)
network = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 64, 3, stride=2), nn.AdaptiveAvgPool2d(1))
network = nn.Sequential(network, nn.Flatten(), nn.Linear(64, 128), nn.Linear(128, 10))
for layout in (torch.contiguous_format, torch.channels_last):
    for size in (1, 64):
        x = torch.randn(size, 3, 16, 16).contiguous(memory_format=layout)
        with torch.autocast("cpu", torch.bfloat16):
            y = network.to(memory_format=layout)(x)
        y.float().square().mean().backward()
        assert torch.isfinite(y).all()

import time
try:
    from equipoise.models import create_model
except ImportError:  # of a program that finds us in its own way; then the time is not known
    raise SystemExit
network = create_model("resnet8", num_classes=10).to(memory_format=torch.channels_last)
x = torch.randn(32, 3, 32, 32).contiguous(memory_format=torch.channels_last)
least = {False: 1e9, True: 1e9}
for trial in range(6):  # in turns; the first prepares the convolutions
    for half in least:
        began = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            y = network(x)
        y.float().square().mean().backward()
        least[half] = min(least[half], time.perf_counter() - began)
print("slowdown", least[True] / least[False])
"""


@dataclass(frozen=True)
class Finding:
    """`problem` is None where bf16 works as it is; else `remedy` is the instruction set with which it does, if any.

    `slowdown` is how long a step of a small ResNet takes in bf16, where that works, over its time in float32.
    """

    problem: str | None = None
    remedy: str | None = None
    slowdown: float | None = None


def check_precision(recipes: Iterable[Recipe], device: torch.device) -> None:
    """Make sure, before anything is trained, that processes started from now on can compute what the recipes ask for.

    Where bf16 works with fewer instruction sets only, those are chosen for them; where it does not work, or the user
    has chosen others, an error says so.
    """
    if not _asked_for(recipes, device):
        return
    finding = bf16_here()
    if finding.problem is None:
        return
    if finding.remedy is None or os.environ.get(VARIABLE, finding.remedy) != finding.remedy:
        raise EquipoiseError(words(finding))
    os.environ[VARIABLE] = finding.remedy


def slow_words(recipes: Iterable[Recipe], device: torch.device) -> str | None:
    """What to say, before anything is trained, where bf16 is asked for and slower than float32 here."""
    if not _asked_for(recipes, device) or (slowdown := bf16_here().slowdown or 0.0) < SLOWER:
        return None
    return (
        f'On this CPU precision = "bf16" takes about {slowdown:.1f} times as long as "float32" (a small ResNet, '
        'measured once): it is for GPUs; write precision = "float32" to be faster here.'
    )


def _asked_for(recipes: Iterable[Recipe], device: torch.device) -> bool:
    return device.type == "cpu" and any(recipe.plan.precision == "bf16" for recipe in recipes)


def words(finding: Finding) -> str:
    """What is wrong and what to do, in one sentence."""
    does = f"set {VARIABLE}={finding.remedy} in the environment, or write" if finding.remedy else "write"
    return f'precision = "bf16" cannot be used on this CPU ({finding.problem}): {does} precision = "float32"'


@lru_cache(maxsize=1)
def bf16_here() -> Finding:
    """What was found on this machine, now or before."""
    return remembered("bf16-timed", lambda: asdict(tried_out()), lambda finding: Finding(**finding))


def tried_out() -> Finding:
    problem, slowdown = _tried_with(os.environ.get(VARIABLE))
    if problem is None:
        return Finding(slowdown=slowdown)
    for name in SETS:
        with_less, slowdown = _tried_with(name)
        if with_less is None:
            return Finding(problem, name, slowdown)
    return Finding(problem)


def _tried_with(instructions: str | None) -> tuple[str | None, float | None]:
    """Why bf16 does not work with these instruction sets at most, and how slow it is if it does, as far as known."""
    environment = os.environ | ({VARIABLE: instructions} if instructions else {})
    command = [sys.executable, "-c", PROBE]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return None, None  # a busy machine says nothing about its processor
    if done.returncode in (0, -signal.SIGKILL, -signal.SIGTERM):  # who kills from outside says nothing either
        _, _, slowdown = done.stdout.partition("slowdown ")
        return None, float(slowdown) if slowdown and done.returncode == 0 else None
    last = (done.stderr.strip().splitlines() or [""])[-1]
    return f"PyTorch's bf16 product {end_of(done.returncode)}" + (f": {last}" if done.returncode > 0 else ""), None
