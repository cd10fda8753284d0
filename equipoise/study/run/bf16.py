"""Whether this CPU can compute in bf16: tried out once, in a process that may die of it.

Some machines announce instructions (AMX) that the system does not let programs use. PyTorch believes the announcement,
and the first bf16 product kills the process. What was found is kept in the user's cache folder.
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
"""


@dataclass(frozen=True)
class Finding:
    """`problem` is None where bf16 works as it is; else `remedy` is the instruction set with which it does, if any."""

    problem: str | None = None
    remedy: str | None = None


def check_precision(recipes: Iterable[Recipe], device: torch.device) -> None:
    """Make sure, before anything is trained, that processes started from now on can compute what the recipes ask for.

    Where bf16 works with fewer instruction sets only, those are chosen for them; where it does not work, or the user
    has chosen others, an error says so.
    """
    if device.type != "cpu" or not any(recipe.plan.precision == "bf16" for recipe in recipes):
        return
    finding = bf16_here()
    if finding.problem is None:
        return
    if finding.remedy is None or os.environ.get(VARIABLE, finding.remedy) != finding.remedy:
        raise EquipoiseError(words(finding))
    os.environ[VARIABLE] = finding.remedy


def words(finding: Finding) -> str:
    """What is wrong and what to do, in one sentence."""
    does = f"set {VARIABLE}={finding.remedy} in the environment, or write" if finding.remedy else "write"
    return f'precision = "bf16" cannot be used on this CPU ({finding.problem}): {does} precision = "float32"'


@lru_cache(maxsize=1)
def bf16_here() -> Finding:
    """What was found on this machine, now or before."""
    return remembered("bf16", lambda: asdict(tried_out()), lambda finding: Finding(**finding))


def tried_out() -> Finding:
    problem = _problem(os.environ.get(VARIABLE))
    if problem is None:
        return Finding()
    return Finding(problem, next((name for name in SETS if _problem(name) is None), None))


def _problem(instructions: str | None) -> str | None:
    """Why bf16 does not work with these instruction sets at most; None if it does."""
    environment = os.environ | ({VARIABLE: instructions} if instructions else {})
    command = [sys.executable, "-c", PROBE]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return None  # a busy machine says nothing about its processor
    if done.returncode in (0, -signal.SIGKILL, -signal.SIGTERM):
        return None  # who kills from outside says nothing either
    last = (done.stderr.strip().splitlines() or [""])[-1]
    return f"PyTorch's bf16 product {end_of(done.returncode)}" + (f": {last}" if done.returncode > 0 else "")
