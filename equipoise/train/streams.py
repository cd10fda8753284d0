"""Random numbers split by purpose, so that adding a mixing changes neither the initial weights nor the order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

PURPOSES = ("order", "augment", "mix", "noise")


class Streams:
    """One generator a purpose on `device`, all from one seed. `noise` serves the network and the loss (dropout, …)."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self.seed = seed
        self.generators = {
            purpose: torch.Generator(device).manual_seed(derived_seed(seed, purpose)) for purpose in PURPOSES
        }

    def __getitem__(self, purpose: str) -> torch.Generator:
        return self.generators[purpose]

    @contextmanager
    def initial_weights(self) -> Iterator[None]:
        """Within the block PyTorch's global generator serves the initial weights; afterwards it is as before."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derived_seed(self.seed, "weights"))
            yield

    def begin_epoch(self, number: int, rank: int) -> None:
        """Let the process `rank` of several draw numbers of its own, which depend on the epoch and nothing before it.

        So a checkpoint need not hold them for each process. The order of samples goes on: it is common to all.
        PyTorch's global generator is set too, since networks of other libraries draw from it.
        """
        for purpose, generator in self.generators.items():
            if purpose != "order":
                generator.manual_seed(derived_seed(self.seed, f"{purpose}/epoch {number}/process {rank}"))
        torch.manual_seed(derived_seed(self.seed, f"global/epoch {number}/process {rank}"))

    def state_dict(self) -> dict[str, Tensor]:
        return {purpose: generator.get_state() for purpose, generator in self.generators.items()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        for purpose, generator in self.generators.items():
            generator.set_state(state[purpose].cpu())


def derived_seed(seed: int, purpose: str) -> int:
    """A seed for one purpose; neighbouring seeds give unrelated ones."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{purpose}".encode()).digest()[:7], "big")
