"""Ghost batch normalization."""

from __future__ import annotations

from typing import Unpack

import torch

from ..core import checks, register
from ._base import Device, TorchOptions
from ._then_relu import ThenRelu
from .kernels.groups import Block

__all__ = ["GhostBatchNorm2d"]


@register(
    "ghost",
    kind="norm",
    year=2017,
    arxiv="1705.08741",
    space={"ghost_size": {"values": (8, 16, 32), "scale": "log", "low": 2}},
)
class GhostBatchNorm2d(ThenRelu):
    r"""Batch norm over small contiguous pieces of the batch, the ghost batches, each with its own statistics.

    .. math:: y_i = \gamma \frac{x_i - \mu_g}{\sqrt{\sigma_g^2 + \epsilon}} + \beta, \qquad
        g = \lfloor i / B' \rfloor

    with mean and (biased) variance of each channel over ghost batch g. Smaller ghosts regularize more.

    Args:
        num_features: channels. Inputs are (N, C, *): also those of `BatchNorm1d` and `BatchNorm3d`.
        ghost_size: B', examples in a ghost batch. 16 has the best accuracy with example weighing in the paper's
            table 1; it is worth tuning. At 2 or less, batch-group norm serves better.
        eps: 1e-5, as in the authors' code.
        decay: what the moving averages keep at each batch; 0.99 in the authors' code (PyTorch's batch norm: 0.9). They
            need some 500 batches to arrive; for shorter training keep less. None averages over all batches.

    The last ghost batch has what is left over. Where it would have a single value for each channel (one example, one
    position) it joins the one before. The moving averages take one step for each batch, from E[x] and E[x²] over all
    of it, whatever the ghost size. Inference is that of batch norm. Split over processes, each has its own ghosts.

    As PyTorch's norms it also takes `momentum`, which is 1 - decay, `affine`, `bias`, `track_running_stats`, `device`
    and `dtype`.

    Differs from the paper: ghost batches need not divide the batch.

    Example:
        >>> norm = GhostBatchNorm2d(1, ghost_size=2)
        >>> norm(torch.tensor([1.0, 3.0, 10.0, 30.0]).view(4, 1, 1, 1)).flatten()
        tensor([-1.0000,  1.0000, -1.0000,  1.0000], grad_fn=...)

    Reference: Hoffer, Hubara, Soudry. Train longer, generalize better: closing the generalization gap in large batch
    training of neural networks. NeurIPS 2017. Summers, Dinneen. Four Things Everyone Should Know to Improve Batch
    Normalization. ICLR 2020.
    """

    def __init__(
        self,
        num_features: int,
        ghost_size: int = 16,
        eps: float = 1e-5,
        decay: float | None = 0.99,
        device: Device = None,
        dtype: torch.dtype | None = None,
        **options: Unpack[TorchOptions],
    ) -> None:
        super().__init__(num_features, eps, decay, device=device, dtype=dtype, **options)
        self.ghost_size = checks.whole("ghost_size", ghost_size, 1)

    def block(self) -> Block:
        return Block(self.ghost_size, self.num_features)
