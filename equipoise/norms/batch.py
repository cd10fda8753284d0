"""Batch normalization, as PyTorch has it, which also tracks the moving average of x²."""

from __future__ import annotations

import sys
from typing import cast

import torch
from torch import Tensor, nn

from ..core import checks, register
from ._base import Device, Norm
from ._moving import update_moving
from ._then_relu import ThenRelu
from .kernels.groups import Block, Statistics, whole_batch_norm
from .kernels.synchronized import has_company, synchronized_norm

__all__ = ["BatchNorm2d"]


@register("batch", kind="norm", year=2015, arxiv="1502.03167", later=("synchronized",))
class BatchNorm2d(ThenRelu, nn.BatchNorm2d):
    r"""Each channel is shifted and scaled to mean 0 and variance 1 over the batch.

    .. math:: y = \gamma \frac{x - \mu_B}{\sqrt{\sigma_B^2 + \epsilon}} + \beta

    It does what `torch.nn.BatchNorm2d` does, on the CPU faster, and keeps besides its `running_var` the moving average
    of x² in `running_square`, which example weighing wants: `running_var` misses how much the means of the batches
    differ.

    Args:
        num_features: channels. Inputs are (N, C, *): also those of `BatchNorm1d` and `BatchNorm3d`.
        eps: 1e-5, as in the CIFAR code of the papers.
        momentum: what a batch adds to the moving averages, 0.1 as in PyTorch and that code. Summers and Dinneen's
            layers have 0.01 (decay 0.99). None averages over all batches.
        synchronized: where several processes train the network (DDP), take the statistics over the images of all of
            them, on GPUs (NCCL) or CPUs (gloo); else each process has its own. Every process must have images of each
            batch. In one process it changes nothing.

    As PyTorch's it also takes `affine`, `track_running_stats`, `device`, `dtype` and `bias`.

    Differs from the paper: the moving averages are exponential ones, as in every library. Inference is PyTorch's, with
    `running_var`. Example weighing takes the average of x², as in the code of Summers and Dinneen; so a weight of 0,
    which is the limit of small ones, differs from no weighing where the means of batches differ.

    Example:
        >>> BatchNorm2d(2)(torch.tensor([1.0, 3.0]).view(2, 1, 1, 1).expand(2, 2, 1, 1))[:, 0].flatten()
        tensor([-1.0000,  1.0000], grad_fn=...)

    Reference: Ioffe, Szegedy. Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate
    Shift. ICML 2015.
    """

    own_example_weight = None
    precise = (*Norm.precise, "running_var")

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
        *,
        synchronized: bool = False,
        **bias: bool,
    ) -> None:
        super().__init__(
            num_features,
            eps,
            None,
            momentum=momentum,
            affine=affine,
            track_running_stats=track_running_stats,
            device=device,
            dtype=dtype,
            **bias,
        )
        self.synchronized = checks.truth("synchronized", synchronized)

    def block(self) -> Block:
        return Block(sys.maxsize, self.num_features)  # the whole batch

    def normalize(self, x: Tensor) -> tuple[Tensor, Statistics]:
        if self.synchronized and has_company():
            return synchronized_norm(x, self.weight, self.bias, self.eps)
        return whole_batch_norm(x, self.weight, self.bias, self.eps)

    def then_relu(self, x: Tensor, shortcut: Tensor | None = None) -> Tensor | None:
        return None if self.synchronized and has_company() else super().then_relu(x, shortcut)

    def track(self, batch: Statistics, rate: float, values: int) -> None:
        moving = self.running_mean, self.running_square, self.square_rest
        n = values if batch.values is None else batch.values
        update_moving(*moving, batch, rate, self.usual()[1], 1 / (1 - 1 / n))

    def usual(self) -> tuple[Tensor, Tensor]:
        return self.running_mean, cast(Tensor, self._buffers["running_var"])

    @torch.no_grad()
    def set_moving(self, mean: Tensor, var: Tensor) -> None:
        super().set_moving(mean, var)
        self.usual()[1].copy_(var)

    def __prepare_scriptable__(self) -> nn.Module:
        """PyTorch's own, which shares all numbers; it has no moving average of x²."""
        if self.example_weight is not None:
            return super().__prepare_scriptable__()
        stock = nn.BatchNorm2d(self.num_features, self.eps, self.momentum, self.affine, self.track_running_stats)
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(stock, name, getattr(self, name))
        return stock.train(self.training)

    def extra_repr(self) -> str:
        return nn.BatchNorm2d.extra_repr(self) + (", synchronized=True" if self.synchronized else "")
