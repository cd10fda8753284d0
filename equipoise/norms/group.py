"""Group normalization, with moving averages."""

from __future__ import annotations

from typing import Any, Unpack

import torch

from ..core import checks, register
from ._base import Device, TorchOptions
from ._then_relu import ThenRelu
from .kernels.groups import Block, fit_groups

__all__ = ["GroupNorm2d"]


@register(
    "group", kind="norm", year=2018, arxiv="1803.08494", space={"groups": {"values": (8, 16, 32), "scale": "choice"}}
)
class GroupNorm2d(ThenRelu):
    r"""Each example is normalized by itself, over groups of channels.

    .. math:: y = \gamma \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta

    with mean and variance over all positions of one example and C / groups consecutive channels.

    Args:
        num_features: C.
        groups: channel groups; 32 is the paper's. Where it does not divide C, the largest number below that does.
        eps: 1e-5, as in the paper.
        decay: what the moving averages keep at each batch; 0.99 in the authors' code of example weighing. None averages
            over all batches.

    `example_weight` is 1 here, which is group norm; below 1 the moving averages have a share in inference, which
    helps a little: `tune_example_weight` finds how much.

    As PyTorch's norms it also takes `momentum`, which is 1 - decay, `affine`, `bias`, `track_running_stats`, `device`
    and `dtype`.

    Differs from the paper: it tracks the moving averages of x and x², which training does not use.

    Example:
        >>> norm = GroupNorm2d(2, groups=1)
        >>> norm(torch.tensor([[1.0, 3.0], [10.0, 30.0]])[:, :, None, None]).flatten()
        tensor([-1.0000,  1.0000, -1.0000,  1.0000], grad_fn=...)

    Reference: Wu, He. Group Normalization. ECCV 2018.
    """

    own_example_weight = 1.0

    def __init__(
        self,
        num_features: int,
        groups: int = 32,
        eps: float = 1e-5,
        decay: float | None = 0.99,
        device: Device = None,
        dtype: torch.dtype | None = None,
        **options: Unpack[TorchOptions],
    ) -> None:
        super().__init__(num_features, eps, decay, device=device, dtype=dtype, **options)
        self.groups = checks.whole("groups", groups, 1)

    def block(self) -> Block:
        return Block(1, fit_groups(self.num_features, self.groups), alone=True)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        tracked = {prefix + name: buffer for name, buffer in self._buffers.items() if buffer is not None}
        if not tracked.keys() & state_dict.keys():
            state_dict.update(tracked)  # PyTorch's group norm, which has no moving averages: ours stay as they are
        super()._load_from_state_dict(state_dict, prefix, *args)
