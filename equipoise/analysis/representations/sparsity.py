"""How many activations of a layer are not zero."""

from __future__ import annotations

from typing import Any

import torch

from .._kinds import Array, either_kind
from ._rows import rows_of


@either_kind
def nonzero_share(activations: Array) -> Any:
    """Share of the activations (N, ...) that are not exactly 0, over all samples, channels and positions: 0 to 1.

    For a residual block, take them after its last ReLU. Batches of equal size may be averaged.

    >>> nonzero_share([[0.0, 2.0], [0.0, 0.0]])
    0.25

    Reference: Kornblith, Chen, Lee, Norouzi. Why Do Better Loss Functions Lead to Less Transferable Features? NeurIPS
    2021, figure 2.
    """
    x = rows_of(activations, "activations")
    return torch.count_nonzero(x).double() / x.numel()
