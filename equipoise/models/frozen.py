"""A new head on a trained network that stays as it is."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..core import Output
from ._base import HeadFactory, Network
from .pretraining import IMAGENET

SMALLEST_STD = 1e-3  # a feature that never varies would divide by zero


class Standardize(nn.Module):
    """(x - mean) / std of each feature: (N, d) -> (N, d)."""

    mean: Tensor
    std: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("std", torch.ones(dim))

    def fit(self, mean: Tensor, std: Tensor) -> None:
        """Take over mean and deviation (d,) of the features of training images."""
        self.mean.copy_(mean)
        self.std.copy_(std.clamp_min(SMALLEST_STD))

    def forward(self, features: Tensor) -> Tensor:
        return (features - self.mean) / self.std


class FrozenBody(Network):
    """`body`, a trained network, never moves and is always in inference mode; `head` acts on its standardized features.

    It takes images as any network does, or features (N, d) that the body gave for them before. The body is no part of
    `state_dict`: it is made again from its own weights, and many heads share one.
    """

    stages = ("scale",)

    def __init__(self, body: Network, num_classes: int, make_head: HeadFactory) -> None:
        super().__init__()
        self.body = body.eval().requires_grad_(False)
        self.feature_dim = body.feature_dim
        self.pretraining = body.pretraining or IMAGENET
        self.scale = Standardize(self.feature_dim)
        self.head = make_head(self.feature_dim, num_classes)
        self.register_load_state_dict_post_hook(_body_is_never_missing)

    @property
    def sites(self) -> tuple[str, ...]:
        """No mixing acts on features."""
        return ()

    def features(self, x: Tensor) -> Tensor:
        features: Tensor = self.scale(x if x.dim() == 2 else self.body.features(x))
        return features

    def output(self, x: Tensor) -> Output:
        features = self.features(x)
        return Output(self.head(features), features)

    def train(self, mode: bool = True) -> FrozenBody:
        self.training = mode
        self.scale.train(mode)
        self.head.train(mode)
        return self

    def state_dict(self, *args: Any, prefix: str = "", **options: Any) -> Any:
        state = super().state_dict(*args, prefix=prefix, **options)
        for name in [name for name in state if name.startswith(f"{prefix}body.")]:
            del state[name]
        return state


def _body_is_never_missing(network: nn.Module, keys: Any) -> None:
    keys.missing_keys[:] = [name for name in keys.missing_keys if "body" not in name.split(".")]
