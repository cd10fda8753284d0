"""What our norms share: γ and β, moving averages of x and x², and inference with example weighing."""

from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType
from typing import Any, TypedDict

import torch
from torch import Tensor, nn
from torch.fx import Proxy

from ..core import checks, signature_repr
from ._moving import moving_variance, set_moving, update_moving
from ._taken_over import as_leaf, not_scriptable, refuse_conversion
from .example_weighing.weighing import example_weighted_norm
from .kernels.groups import Block, Statistics, affine, fixed_norm, grouped_norm, pool_channels


class TorchOptions(TypedDict, total=False):
    """What PyTorch's norms take besides: each of ours takes it too, by name."""

    momentum: float | None
    affine: bool
    bias: bool
    track_running_stats: bool


Device = torch.device | str | int | None


class Norm(nn.modules.batchnorm._BatchNorm):
    """A norm of (N, C, *) inputs over blocks of examples and channels. A subclass writes `block`.

    In training a block's own statistics normalize it, and `running_mean` and `running_square`, the moving averages
    of x and x², take one step for each batch, from E[x] and E[x²] over the whole batch. In inference they replace
    the block's statistics, mixed with those of the example itself where `example_weight` is above 0.

    To PyTorch and other libraries it is a batch norm: what they do with one (averaging of weights, freezing, no weight
    decay) finds it by that class. `momentum` is PyTorch's word for 1 - `decay`; None, in either, makes the moving
    averages those of all batches since `reset_running_stats`. They are float32 or better in a network of any type:
    half precision has no room for x².
    """

    weight: nn.Parameter | None  # type: ignore[assignment]
    bias: nn.Parameter | None  # type: ignore[assignment]
    running_mean: Tensor
    running_square: Tensor
    square_rest: Tensor
    num_batches_tracked: Tensor
    own_example_weight: float | None = 0.0  # at which inference is the published one; None: at no weight
    precise: tuple[str, ...] = ("running_mean", "running_square", "square_rest")  # the moving averages
    counters: tuple[str, ...] = ("num_batches_tracked",)

    def __init__(
        self,
        num_features: int,
        eps: float,
        decay: float | None,
        *,
        momentum: float | EllipsisType | None = ...,
        affine: bool = True,
        bias: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        nn.Module.__init__(self)  # that of PyTorch's batch norm would make a moving variance
        self.num_features = checks.whole("num_features", num_features, 1)
        self.eps = checks.above("eps", eps, 0)
        if isinstance(momentum, EllipsisType):
            momentum = None if decay is None else 1 - checks.between("decay", decay, 0, 1)
        self.momentum = momentum if momentum is None else checks.between("momentum", momentum, 0, 1)
        self.affine, self.track_running_stats = affine, track_running_stats
        self.example_weight = self.own_example_weight
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            values = nn.Parameter(torch.empty(num_features, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, values)
        at_least = torch.promote_types(dtype or torch.get_default_dtype(), torch.float32)
        for name in self.precise:
            self._register(name, torch.empty(num_features, device=device, dtype=at_least))
        for name in self.counters:
            self._register(name, torch.empty((), device=device, dtype=torch.int64))
        self.reset_parameters()

    def block(self) -> Block:
        """What a statistic is taken over in training."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        if isinstance(x, Proxy):
            return as_leaf(self, x)
        check_input(self, x)
        tracked = self.running_mean is not None
        if not self.training and tracked:
            return self.infer(x)
        if x.numel() == 0:
            return affine(x, self.weight, self.bias).to(x.dtype)  # γ and β are given gradients of 0
        if x.numel() == self.block().groups:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {x.shape}")
        y, batch = self.normalize(x)
        self._note(batch, x)
        return y

    def then_relu(self, x: Tensor, shortcut: Tensor | None = None) -> Tensor | None:
        """relu(norm(x) + shortcut) in as many passes over the maps as the norm alone takes.

        None where there are no kernels for that, or where somebody listens to the norm: then the caller goes step by
        step. There are such kernels for training alone.
        """
        return None

    def _note(self, batch: Statistics, x: Tensor) -> None:
        """Let the moving averages follow the batch x, where they are kept."""
        if self.running_mean is not None and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            rate = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
            self.track(batch, rate, x.numel() // self.num_features)

    def normalize(self, x: Tensor) -> tuple[Tensor, Statistics]:
        """x normalized as in training, and the statistics of the batch."""
        return grouped_norm(x, self.weight, self.bias, self.block(), self.eps)

    def track(self, batch: Statistics, rate: float, values: int) -> None:
        """One step of the moving averages towards those of a batch, which has so many `values` a channel."""
        update_moving(self.running_mean, self.running_square, self.square_rest, batch, rate)

    def infer(self, x: Tensor) -> Tensor:
        """x normalized as in inference: the same for each example whatever batch it comes in."""
        groups = self.block().groups
        shared = groups if groups < self.num_features else None
        mean, var = self.usual() if self.example_weight is None else self.moving()
        if not self.example_weight:
            if shared is not None:
                mean, var = pool_channels(mean, var, shared)
            return fixed_norm(x, mean, var, self.weight, self.bias, self.eps)
        return example_weighted_norm(x, mean, var, self.weight, self.bias, self.example_weight, self.eps, groups=shared)

    def moving(self) -> tuple[Tensor, Tensor]:
        """Mean and variance (C,) that the moving averages stand for."""
        return self.running_mean, moving_variance(self.running_mean, self.running_square, self.square_rest)

    def usual(self) -> tuple[Tensor, Tensor]:
        """Mean and variance (C,) of inference without example weighing, before channels share them."""
        return self.moving()

    @torch.no_grad()
    def set_moving(self, mean: Tensor, var: Tensor) -> None:
        """Take over the moving statistics of another norm."""
        set_moving(self.running_mean, self.running_square, self.square_rest, mean, var)

    @property
    def decay(self) -> float | None:
        """What the moving averages keep at each batch: 1 - `momentum`, without the digits that subtracting adds."""
        return None if self.momentum is None else round(1 - self.momentum, 15)

    @property
    def running_var(self) -> Tensor | None:
        """The moving variance (C,), as PyTorch's norms name it."""
        refuse_conversion(self)
        return None if self.running_mean is None else self.usual()[1]

    @running_var.setter
    def running_var(self, var: Tensor | None) -> None:
        if var is None:
            raise ValueError(f"{type(self).__name__} has a moving variance unless made with track_running_stats=False")
        self.set_moving(self.running_mean, var)

    @torch.no_grad()
    def reset_running_stats(self) -> None:
        if self.running_mean is not None and not self.running_mean.is_meta:
            self.set_moving(torch.zeros_like(self.running_mean), torch.ones_like(self.running_mean))
            for name in self.counters:
                self.get_buffer(name).zero_()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.reset_running_stats()
        if self.weight is not None:
            self.weight.fill_(1)
        if self.bias is not None:
            self.bias.zero_()

    def _register(self, name: str, buffer: Tensor) -> None:
        # not by `register_buffer`, for which the property `running_var` has taken the name
        self._buffers[name] = buffer if self.track_running_stats else None

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Norm:
        """As in every module; but where a cast would leave the moving averages less than float32, they only move."""
        before = {name: self._buffers[name] for name in self.precise}
        super()._apply(fn, recurse)
        for name, old in before.items():
            new = self._buffers[name]
            if old is not None and new is not None and new.dtype.itemsize < min(old.dtype.itemsize, 4):
                self._buffers[name] = old.to(new.device, torch.float32)
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        if self.running_mean is not None:
            adapt_state(state_dict, prefix)
        if "running_var" not in self._buffers:
            state_dict.pop(prefix + "running_var", None)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _check_input_dim(self, x: Tensor) -> None:
        check_input(self, x)

    def __prepare_scriptable__(self) -> nn.Module:
        raise not_scriptable(self)

    def extra_repr(self) -> str:
        unusual = {"affine": self.weight is not None, "track_running_stats": self.running_mean is not None}
        return ", ".join([signature_repr(self), *(f"{name}=False" for name, is_so in unusual.items() if not is_so)])


def adapt_state(state: dict[str, Any], prefix: str) -> None:
    """Give the saved state of a stock batch norm the moving average of x², as far as its variance tells it."""
    mean, var = state.get(prefix + "running_mean"), state.get(prefix + "running_var")
    if prefix + "running_square" not in state and mean is not None and var is not None:
        precise = torch.promote_types(mean.dtype, torch.float32)
        square, rest, same = (torch.empty_like(mean, dtype=dtype) for dtype in (precise, precise, mean.dtype))
        set_moving(same, square, rest, mean, var)
        state[prefix + "running_square"], state[prefix + "square_rest"] = square, rest
    elif prefix + "running_square" in state and prefix + "square_rest" not in state:
        state[prefix + "square_rest"] = torch.zeros_like(state[prefix + "running_square"])


def check_input(norm: Any, x: Tensor) -> None:
    """(N, C, *) floating, C as the norm was made for."""
    if torch._C._get_tracing_state() is not None:
        return  # sizes are numbers of the traced graph there, not to be asked
    if x.dim() < 2 or x.shape[1] != norm.num_features or not x.is_floating_point():
        raise ValueError(
            f"{type(norm).__name__} expects floating inputs of shape (N, {norm.num_features}, …), "
            f"got {x.dtype} {tuple(x.shape)}"
        )
