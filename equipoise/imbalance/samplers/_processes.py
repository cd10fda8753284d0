"""Which of how many processes this is, as far as the samples of an epoch are concerned."""

from __future__ import annotations

import sys

from torch import distributed


def processes() -> tuple[int, int]:
    """This process's number and how many processes a sampler has to split its indices over: (0, 1) for one alone.

    Looked up at each use and not once: Lightning makes the process group after the sampler, and with
    `strategy="ddp_spawn"` in other processes.
    """
    if accelerate_splits() or not (distributed.is_available() and distributed.is_initialized()):
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


def accelerate_splits() -> bool:
    """Whether Accelerate rules this process: its `prepare` splits the batches of any sampler, ours too.

    `prepare` leaves no sign on the sampler that would hold for all its ways (whole batches for each process, split
    batches, batches sent out by the first process); that there is an `Accelerator` is one.
    """
    state = sys.modules.get("accelerate.state")  # where it is not imported there is no Accelerator
    return state is not None and state.is_initialized()
