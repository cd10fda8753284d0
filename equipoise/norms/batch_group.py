"""Batch-group normalization."""

from __future__ import annotations

from typing import Unpack

import torch

from ..core import checks, register
from ._base import Device, TorchOptions
from ._then_relu import ThenRelu
from .kernels.groups import Block, fit_groups

__all__ = ["BatchGroupNorm2d"]


@register(
    "batch_group",
    kind="norm",
    year=2020,
    arxiv="1906.03548",
    space={"groups": {"values": (8, 16, 32), "scale": "choice"}, "examples": {"values": (2, 4), "scale": "choice"}},
)
class BatchGroupNorm2d(ThenRelu):
    r"""Normalization over groups of channels of a few examples together, for batches too small for batch norm.

    .. math:: y = \gamma \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta

    with mean and (biased) variance over all positions of `examples` consecutive examples and C / groups consecutive
    channels.

    Args:
        num_features: C. Inputs are (N, C, *).
        groups: channel groups; 32 is group norm's. Where it does not divide C, the largest number below that does.
        examples: examples that share statistics; 2 is the paper's. One that is left over is normalized by itself.
        eps: 1e-5, as in the authors' code.
        decay: what the moving averages keep at each batch; 0.99 in the authors' code. None averages over all batches.

    As PyTorch's norms it also takes `momentum`, which is 1 - decay, `affine`, `bias`, `track_running_stats`, `device`
    and `dtype`.

    Differs from the paper: batches and channels that do not divide evenly, which the authors' code does not take.
    With 48 channels and 32 groups that code makes 48 groups of 1; here it is 24 of 2.

    Example:
        >>> norm = BatchGroupNorm2d(2, groups=1)
        >>> norm(torch.tensor([[1.0, 1.0], [3.0, 3.0]])[:, :, None, None]).flatten()
        tensor([-1.0000, -1.0000,  1.0000,  1.0000], grad_fn=...)

    Reference: Summers, Dinneen. Four Things Everyone Should Know to Improve Batch Normalization. ICLR 2020.
    """

    def __init__(
        self,
        num_features: int,
        groups: int = 32,
        examples: int = 2,
        eps: float = 1e-5,
        decay: float | None = 0.99,
        device: Device = None,
        dtype: torch.dtype | None = None,
        **options: Unpack[TorchOptions],
    ) -> None:
        super().__init__(num_features, eps, decay, device=device, dtype=dtype, **options)
        self.groups = checks.whole("groups", groups, 1)
        self.examples = checks.whole("examples", examples, 1)

    def block(self) -> Block:
        return Block(self.examples, fit_groups(self.num_features, self.groups))
