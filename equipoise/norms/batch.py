"""Batch normalization, as PyTorch has it, which also tracks the moving average of x²."""

from __future__ import annotations

import sys
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import checks
from ..core import register
from ._base import adapt_state, check_input
from ._groups import Block, whole_batch_norm
from ._moving import moving_variance, set_moving, update_moving
from .weighing import example_weighted_norm


@register("batch", kind="norm", year=2015, arxiv="1502.03167")
class BatchNorm2d(nn.BatchNorm2d):
    r"""Each channel is shifted and scaled to mean 0 and variance 1 over the batch.

    .. math:: y = \gamma \frac{x - \mu_B}{\sqrt{\sigma_B^2 + \epsilon}} + \beta

    It does what `torch.nn.BatchNorm2d` does, on the CPU faster, and keeps besides its `running_var` the moving average
    of x² in `running_square`, which example weighing wants: `running_var` misses how much the means of the batches
    differ.

    Args:
        num_features: channels. Inputs are (N, C, *): also those of `BatchNorm1d` and `BatchNorm3d`.
        eps: 1e-5, as in the CIFAR code of the papers.
        momentum: what a batch adds to the moving averages, 0.1 as in PyTorch and that code. Summers and Dinneen's
            layers have 0.01 (decay 0.99).

    Differs from the paper: the moving averages are exponential ones, as in every library. With an example weight of 0
    inference is PyTorch's, with `running_var`; in the code of Summers and Dinneen it uses the average of x².

    Example:
        >>> BatchNorm2d(2)(torch.tensor([1.0, 3.0]).view(2, 1, 1, 1).expand(2, 2, 1, 1))[:, 0].flatten()
        tensor([-1.0000,  1.0000], grad_fn=...)

    Reference: Ioffe, Szegedy. Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate
    Shift. ICML 2015.
    """

    running_mean: Tensor
    running_var: Tensor
    running_square: Tensor
    square_rest: Tensor
    num_batches_tracked: Tensor
    momentum: float
    own_example_weight = 0.0

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        checks.whole("num_features", num_features, 1)
        super().__init__(num_features, checks.at_least("eps", eps, 0), checks.between("momentum", momentum, 0, 1))
        self.example_weight = self.own_example_weight
        self.register_buffer("running_square", torch.ones(num_features))
        self.register_buffer("square_rest", torch.zeros(num_features))

    def forward(self, x: Tensor) -> Tensor:
        self._check_input_dim(x)
        if self.training:
            return self._train(x)
        if self.example_weight == 0:
            return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps)
        return example_weighted_norm(x, *self.moving(), self.weight, self.bias, self.example_weight, self.eps)

    def _train(self, x: Tensor) -> Tensor:
        y, batch = whole_batch_norm(x, self.weight, self.bias, self.eps)
        unbiased = 1 / (1 - self.num_features / x.numel())
        moving = self.running_mean, self.running_square, self.square_rest
        update_moving(*moving, batch, self.momentum, self.running_var, unbiased)
        self.num_batches_tracked.add_(1)
        return y

    def block(self) -> Block:
        """What a statistic is taken over in training: the whole batch."""
        return Block(sys.maxsize, self.num_features)

    def moving(self) -> tuple[Tensor, Tensor]:
        """Mean and variance (C,) that the moving averages of x and x² stand for."""
        return self.running_mean, moving_variance(self.running_mean, self.running_square, self.square_rest)

    @torch.no_grad()
    def set_moving(self, mean: Tensor, var: Tensor) -> None:
        """Take over the moving statistics of another norm."""
        set_moving(self.running_mean, self.running_square, self.square_rest, mean, var)
        self.running_var.copy_(var)

    def reset_running_stats(self) -> None:
        super().reset_running_stats()
        if "running_square" in self._buffers:  # PyTorch's constructor resets before ours makes them
            self.running_square.fill_(1)
            self.square_rest.zero_()

    def _check_input_dim(self, x: Tensor) -> None:
        check_input(self, x)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        adapt_state(state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *args)
