"""What all our networks share: named stages, a feature map, features, a head."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor, nn

from ..core import Output
from .pretraining import Pretraining

NormFactory = Callable[[int], nn.Module]
HeadFactory = Callable[[int, int], nn.Module]

# no machine trains a network past these, and only to describe one takes minutes
MOST_LAYERS = 2_000
MOST_CHANNELS = 16_384


class Network(nn.Module):
    """stem → stage1 → … → mean over positions → head.

    A subclass sets `stem`, the stages named in `stages`, `feature_dim` and `head`. After each of them a mixing may act.
    The head is made last, when the other weights are drawn: networks that differ in the head alone start alike.
    `network(x)` gives logits, as any PyTorch network does; `network.output(x)` gives `Output`. `pretraining` says what
    images its weights want, where it was given weights that tell.
    """

    stages: tuple[str, ...] = ("stem", "stage1", "stage2", "stage3")
    draws_head: bool = False  # whether the head's weights are drawn from He's distribution as the others are
    feature_dim: int
    head: nn.Module
    pretraining: Pretraining | None = None

    @property
    def sites(self) -> tuple[str, ...]:
        """Where a mixing may act, by name: on the images, or on what the module of that name puts out."""
        return ("input", *self.stages)

    def feature_map_of(self, x: Tensor) -> Tensor:
        """Images (N, channels, H, W) -> (N, c, h, w), stage by stage."""
        for name in self.stages:
            x = getattr(self, name)(x)
        return x

    def features_of(self, feature_map: Tensor) -> Tensor:
        """(N, c, h, w) -> (N, d)."""
        return feature_map.mean((2, 3))

    def features(self, x: Tensor) -> Tensor:
        """What the head is given (N, d)."""
        return self.features_of(self.feature_map_of(x))

    def output(self, x: Tensor) -> Output:
        feature_map = self.feature_map_of(x)
        features = self.features_of(feature_map)
        return Output(self.head(features), features, feature_map)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(x).logits

    def own_names(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Weights from a file by the names that they have in this network."""
        return dict(weights)


def kaiming_(module: nn.Module) -> None:
    """Draw the weights of all convolutions and linear layers in `module` from He's normal distribution (fan in)."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(part.weight)
