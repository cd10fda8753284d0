"""Whether a GPU computes a run alike in every process."""

from __future__ import annotations

import os

import torch


def choose_convolutions(*, fast: bool = False) -> None:
    """Settle which of cuDNN's algorithms serve this process; before the first convolution.

    By its rules alone, and without those whose sums have no fixed order, a run comes to the same numbers to the bit:
    in another process, after a stop, in whatever company. `fast` lets cuDNN time all of them and take the fastest,
    which is now this one, now that one; they round differently.
    """
    torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = fast, not fast
    os.environ.setdefault("TORCH_CUDNN_USE_HEURISTIC_MODE_B", "1")  # the better of its two sets of rules, read once
