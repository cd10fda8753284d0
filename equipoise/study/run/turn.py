"""On a GPU one load trains at a time; the next one gets ready meanwhile, and the one before writes what it came to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from ...store import Store
from ...train import Stopped
from .how import How

LOOK_SECONDS = 0.02  # how often a load that waits looks whether it is its turn


def takes_turns(how: How) -> bool:
    """Whether loads wait for each other: where the user did not ask for several at a time on one GPU."""
    return how.device.type == "cuda" and how.workers == 1


@contextmanager
def its_turn(store: Store, how: How, stop: Callable[[], bool]) -> Iterator[None]:
    """Within, no other load of the store trains on this GPU. Raises `Stopped` if `stop()` says so before it begins."""
    while takes_turns(how):
        with store.claim(f"turn-{_gpu(how.device)}") as mine:
            if mine:
                yield
                torch.cuda.empty_cache()  # the next one may need what this one had
                return
        if stop():
            raise Stopped
        time.sleep(LOOK_SECONDS)
    yield


def _gpu(device: torch.device) -> str:
    """A name that no other GPU of this machine has."""
    return str(torch.cuda.get_device_properties(device).uuid)
