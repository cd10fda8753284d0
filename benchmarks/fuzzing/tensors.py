"""Tensors of the same numbers that lie in memory, or are made, in some odd way."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


class Named(Tensor):
    """A subclass that adds nothing."""


def _misaligned(x: Tensor) -> Tensor:
    if not x.numel():
        return x
    raw = bytearray(4 * x.numel() + 8)
    view = torch.frombuffer(raw, dtype=torch.uint8, count=4 * x.numel(), offset=1)
    view.copy_(torch.frombuffer(bytearray(x.contiguous().numpy().tobytes()), dtype=torch.uint8))
    return torch.frombuffer(raw, dtype=torch.float32, count=x.numel(), offset=1).view(x.shape)


def _fake(x: Tensor) -> Tensor:
    return torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True).from_tensor(x)


DISGUISES: dict[str, Callable[[Tensor], Tensor]] = {
    "plain": lambda x: x,
    "transposed": lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
    "last dimension first": lambda x: x.movedim(-1, 0).contiguous().movedim(0, -1),
    "every other row": lambda x: x.repeat_interleave(2, 0)[::2],
    "part of something wider": lambda x: torch.cat([x, x], -1)[..., : x.shape[-1]],
    "an offset": lambda x: torch.cat([x[:1], x])[1:],
    "turned twice": lambda x: x.flip(0).flip(0),
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x,
    "wide strides": lambda x: torch.stack([x, -x], -1)[..., 0],
    "a sign to be turned": lambda x: torch.imag(torch.complex(x, -x).conj()),
    "parameter": lambda x: nn.Parameter(x.clone(), requires_grad=False),
    "subclass": lambda x: x.as_subclass(Named),
    "odd address": _misaligned,
    "made in inference mode": lambda x: _in_inference_mode(x),
    "float64": lambda x: x.double(),
    "bfloat16": lambda x: x.bfloat16(),
    "float16": lambda x: x.half(),
    "meta": lambda x: x.to("meta"),
    "fake": _fake,
    "sparse": lambda x: x.to_sparse(),
    "from numpy": lambda x: torch.from_numpy(x.contiguous().numpy().copy()),
}


def _in_inference_mode(x: Tensor) -> Tensor:
    with torch.inference_mode():
        return x.clone()
