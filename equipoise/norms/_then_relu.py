"""A norm and the ReLU behind it as one, with a shortcut added in between: for norms that have one channel a group."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.modules import module as of_all_modules

from ._base import Norm
from .kernels.device import on_triton
from .kernels.groups import Statistics, is_channels_last, split_examples

TYPES = (torch.bfloat16, torch.float16, torch.float32)


class ThenRelu(Norm):
    """A batch or ghost norm that can be followed by a ReLU in the same kernel."""

    def then_relu(self, x: Tensor, shortcut: Tensor | None = None) -> Tensor | None:
        if not (self._serves(x, shortcut) and self._unobserved()):
            return None
        from .kernels.triton import NormReluTriton

        n, block = len(x), self.block()
        size, blocks = split_examples(n, block.examples, x[0, 0].numel())
        y, mean, var = NormReluTriton.apply(x, shortcut, self.weight, self.bias, size, blocks, self.eps)
        self._note(Statistics(mean, var, size, n), x)
        return y

    def _serves(self, x: Tensor, shortcut: Tensor | None) -> bool:
        """Whether the kernels may take these: maps on a GPU, channels last, while the norm trains by itself."""
        if not (self.training and type(x) is Tensor and x.is_cuda and x.dtype in TYPES and is_channels_last(x)):
            return False
        if x.shape[1] != self.num_features or x.numel() <= self.num_features:
            return False  # `forward` says what is wrong
        if shortcut is not None and not (
            type(shortcut) is Tensor
            and shortcut.shape == x.shape
            and shortcut.dtype == x.dtype
            and is_channels_last(shortcut)
        ):
            return False
        return on_triton(x, shortcut, self.weight, self.bias)

    def _unobserved(self) -> bool:
        """Whether nobody would miss a call of `forward`."""
        is_own = type(self).forward is Norm.forward and "forward" not in self.__dict__
        return is_own and not is_listened_to(self)


def is_listened_to(module: nn.Module) -> bool:
    """Whether hooks wait for this module, or for all."""
    own = (
        module._forward_hooks,
        module._forward_pre_hooks,
        module._backward_hooks,
        module._backward_pre_hooks,
        of_all_modules._global_forward_hooks,
        of_all_modules._global_forward_pre_hooks,
        of_all_modules._global_backward_hooks,
        of_all_modules._global_backward_pre_hooks,
    )
    return any(own)
