"""What our norms share: γ and β, moving averages of x and x², and inference with example weighing."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import checks
from ..core import signature_repr
from ._groups import Block, Statistics, grouped_norm, pool_channels
from ._moving import moving_variance, set_moving, update_moving
from .weighing import example_weighted_norm


class Norm(nn.Module):
    """A norm of (N, C, *) inputs over blocks of examples and channels. A subclass writes `block`.

    In training a block's own statistics normalize it, and `running_mean` and `running_square`, the moving averages
    of x and x², take one step for each batch, from E[x] and E[x²] over the whole batch. In inference they replace
    the block's statistics, mixed with those of the example itself where `example_weight` is not 0.
    """

    weight: nn.Parameter | None
    bias: nn.Parameter | None
    running_mean: Tensor
    running_square: Tensor
    square_rest: Tensor
    own_example_weight = 0.0  # what inference of the method as published corresponds to

    def __init__(self, num_features: int, eps: float, decay: float) -> None:
        super().__init__()
        self.num_features = checks.whole("num_features", num_features, 1)
        self.eps = checks.above("eps", eps, 0)
        self.decay = checks.between("decay", decay, 0, 1)
        self.example_weight = self.own_example_weight
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_square", torch.ones(num_features))
        self.register_buffer("square_rest", torch.zeros(num_features))

    def block(self) -> Block:
        """What a statistic is taken over in training."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        check_input(self, x)
        if not len(x):
            return x
        if not self.training:
            return self.infer(x)
        y, batch = self.normalize(x)
        update_moving(self.running_mean, self.running_square, self.square_rest, batch, 1 - self.decay)
        return y

    def normalize(self, x: Tensor) -> tuple[Tensor, Statistics]:
        """x normalized as in training, and the statistics of the batch."""
        return grouped_norm(x, self.weight, self.bias, self.block(), self.eps)

    def infer(self, x: Tensor) -> Tensor:
        """x normalized as in inference: the same for each example whatever batch it comes in."""
        groups = self.block().groups
        mean, var = self.moving()
        if self.example_weight == 0:
            mean, var = pool_channels(mean, var, groups)
            return F.batch_norm(x, mean, var, self.weight, self.bias, False, 0.0, self.eps)
        return example_weighted_norm(x, mean, var, self.weight, self.bias, self.example_weight, self.eps, groups=groups)

    def moving(self) -> tuple[Tensor, Tensor]:
        """Mean and variance (C,) that the moving averages stand for."""
        return self.running_mean, moving_variance(self.running_mean, self.running_square, self.square_rest)

    @torch.no_grad()
    def set_moving(self, mean: Tensor, var: Tensor) -> None:
        """Take over the moving statistics of another norm."""
        set_moving(self.running_mean, self.running_square, self.square_rest, mean, var)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        adapt_state(state_dict, prefix, drop=("running_var", "num_batches_tracked"))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        return signature_repr(self)


def adapt_state(state: dict[str, Any], prefix: str, drop: tuple[str, ...] = ()) -> None:
    """Give the saved state of a stock batch norm the moving average of x², as far as its variance tells it."""
    mean, var = state.get(prefix + "running_mean"), state.get(prefix + "running_var")
    if prefix + "running_square" not in state and mean is not None and var is not None:
        square, rest, same = torch.empty_like(mean), torch.empty_like(mean), torch.empty_like(mean)
        set_moving(same, square, rest, mean, var)
        state[prefix + "running_square"], state[prefix + "square_rest"] = square, rest
    elif prefix + "running_square" in state and prefix + "square_rest" not in state:
        state[prefix + "square_rest"] = torch.zeros_like(state[prefix + "running_square"])
    for name in drop:
        state.pop(prefix + name, None)


def check_input(norm: nn.Module, x: Tensor) -> None:
    """(N, C, *) floating, C as the norm was made for."""
    if x.dim() < 2 or x.shape[1] != norm.num_features or not x.is_floating_point():
        raise ValueError(
            f"{type(norm).__name__} expects floating inputs of shape (N, {norm.num_features}, …), "
            f"got {x.dtype} {tuple(x.shape)}"
        )
