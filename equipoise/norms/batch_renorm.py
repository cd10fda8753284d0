"""Batch renormalization."""

from __future__ import annotations

import sys
from typing import Any, Unpack

import torch
from torch import Tensor

from ..core import checks, register
from ._base import Device, Norm, TorchOptions
from ._then_relu import ThenRelu
from .kernels.groups import Block, Statistics, grouped_norm, grouped_norm_relu, moments_of_batch

__all__ = ["BatchRenorm2d"]


def renorm_limits(
    steps: Tensor, r_max: float, d_max: float, warmup: int, r_steps: int, d_steps: int
) -> tuple[Tensor, Tensor]:
    """How far r may leave 1 and d may leave 0 after so many steps: not at all until `warmup`, then linearly more."""
    r_share = ((steps - warmup) / max(r_steps - warmup, 1)).clamp(0, 1)
    d_share = ((steps - warmup) / max(d_steps - warmup, 1)).clamp(0, 1)
    return 1 + (r_max - 1) * r_share, d_max * d_share


@register(
    "batch_renorm",
    kind="norm",
    year=2017,
    arxiv="1702.03275",
    neutral={"r_max": 1.0, "d_max": 0.0},
    space={"r_max": {"values": (1.5, 3.0, 6.0), "scale": "log", "low": 1.0}},
)
class BatchRenorm2d(ThenRelu):
    r"""Batch norm whose output in training is moved towards what the moving averages would give.

    .. math:: y = \gamma \left( \frac{x - \mu_B}{\sigma_B} r + d \right) + \beta, \quad
        r = \mathrm{clip}_{1/r_{\max}}^{r_{\max}} \frac{\sigma_B}{\sigma}, \quad
        d = \mathrm{clip}_{-d_{\max}}^{d_{\max}} \frac{\mu_B - \mu}{\sigma}

    No gradient flows through r and d. :math:`\sigma_B = \sqrt{\mathrm{var} + \epsilon}`; :math:`\mu` and
    :math:`\sigma` are moving averages of :math:`\mu_B` and :math:`\sigma_B`, as they were before this batch.

    Args:
        num_features: C. Inputs are (N, C, *).
        r_max: the limit of r at the end of the schedule, 3 as in the paper.
        d_max: the limit of d there, 5 as in the paper.
        warmup: batches with r = 1 and d = 0, which is batch norm; the paper's 5,000 of 160,000 and more. Shorten the
            three numbers for shorter training.
        r_steps: batches after which r_max is reached, 40,000 in the paper.
        d_steps: batches after which d_max is reached, 25,000 in the paper.
        eps: 1e-5, as in the authors' code of the comparison.
        decay: what the moving averages keep at each batch, 0.99 as in the paper. None averages over all batches.

    As PyTorch's norms it also takes `momentum`, which is 1 - decay, `affine`, `bias`, `track_running_stats`, `device`
    and `dtype`. Without moving averages it is batch norm.

    Differs from the paper: nothing known. `running_std` is the σ of plain inference; example weighing, of 0 too, uses
    the moving averages of x and x².

    Example:
        >>> norm = BatchRenorm2d(1)
        >>> norm(torch.tensor([1.0, 3.0]).view(2, 1, 1, 1)).flatten()
        tensor([-1.0000,  1.0000], grad_fn=...)

    Reference: Ioffe. Batch Renormalization: Towards Reducing Minibatch Dependence in Batch-Normalized Models.
    NeurIPS 2017.
    """

    running_std: Tensor
    steps: Tensor
    own_example_weight = None
    precise = (*Norm.precise, "running_std")
    counters = (*Norm.counters, "steps")

    def __init__(
        self,
        num_features: int,
        r_max: float = 3.0,
        d_max: float = 5.0,
        warmup: int = 5000,
        r_steps: int = 40_000,
        d_steps: int = 25_000,
        eps: float = 1e-5,
        decay: float | None = 0.99,
        device: Device = None,
        dtype: torch.dtype | None = None,
        **options: Unpack[TorchOptions],
    ) -> None:
        super().__init__(num_features, eps, decay, device=device, dtype=dtype, **options)
        self.r_max, self.d_max = checks.at_least("r_max", r_max, 1), checks.at_least("d_max", d_max, 0)
        self.warmup = checks.whole("warmup", warmup)
        self.r_steps, self.d_steps = checks.whole("r_steps", r_steps), checks.whole("d_steps", d_steps)

    def block(self) -> Block:
        return Block(sys.maxsize, self.num_features)  # the whole batch

    def normalize(self, x: Tensor) -> tuple[Tensor, Statistics]:
        return grouped_norm(x, *self._corrected(x), self.block(), self.eps)

    def normalize_then_relu(self, x: Tensor, shortcut: Tensor | None) -> tuple[Tensor, Statistics]:
        return grouped_norm_relu(x, shortcut, *self._corrected(x), self.block(), self.eps)

    def _corrected(self, x: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """r γ and d γ + β: batch norm with these is (x̂ r + d) γ + β."""
        if self.running_mean is None:
            return self.weight, self.bias
        with torch.no_grad():
            mean, var = moments_of_batch(x, self.eps)
            std = (var + self.eps).sqrt()
            limits = self.r_max, self.d_max, self.warmup, self.r_steps, self.d_steps
            r_max, d_max = renorm_limits(self.steps, *limits)
            r = (std / self.running_std).clamp(1 / r_max, r_max)
            d = ((mean - self.running_mean) / self.running_std).clamp(-d_max, d_max)
        scale, shift = (r, d) if self.weight is None else (r * self.weight, d * self.weight)
        return scale, shift if self.bias is None else shift + self.bias

    @torch.no_grad()
    def track(self, batch: Statistics, rate: float, values: int) -> None:
        super().track(batch, rate, values)
        std = (batch.merged()[1] + self.eps).sqrt()
        self.running_std.copy_(self.running_std.lerp(std.to(self.running_std.dtype), rate))
        self.steps.add_(1)

    def usual(self) -> tuple[Tensor, Tensor]:
        # the moving deviation has epsilon in it already, and PyTorch takes none of 0
        return self.running_mean, (self.running_std.square() - self.eps).clamp(min=0)

    @torch.no_grad()
    def set_moving(self, mean: Tensor, var: Tensor) -> None:
        super().set_moving(mean, var)
        self.running_std.copy_((var + self.eps).sqrt())

    @torch.no_grad()
    def reset_running_stats(self) -> None:
        """Also starts the schedule again: r and d compare with averages that are forgotten now."""
        super().reset_running_stats()
        if self.running_mean is not None:
            self.running_std.fill_(1)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        if self.running_mean is not None and (var := state_dict.get(prefix + "running_var")) is not None:
            state_dict.setdefault(prefix + "running_std", (var + self.eps).sqrt())
            state_dict.setdefault(prefix + "steps", torch.zeros_like(self.steps))
        super()._load_from_state_dict(state_dict, prefix, *args)
