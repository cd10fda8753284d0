"""`create_model`: a network from texts."""

from __future__ import annotations

from typing import Any

from torch import nn

from ..core import EquipoiseError, Spec
from ._base import HeadFactory, Network, NormFactory
from .bridge import zoo_model


def create_model(
    name: str,
    num_classes: int,
    *,
    norm: str | NormFactory | None = None,
    head: str | HeadFactory | None = None,
    in_channels: int = 3,
) -> Network:
    """A network by name, with the norm and head of your choice.

    Args:
        name: a model with its parameters, such as ``resnet32`` or ``cnn_small(width=32)``; ``timm/NAME`` and
            ``torchvision/NAME`` are networks of those libraries.
        num_classes: C.
        norm: None for batch norm, text such as ``ghost(ghost_size=16)``, or a function of the number of channels.
        head: None for the linear one, text such as ``cosine(tau=0.1)``, or a function of d and C.
        in_channels: channels of the images.

    >>> create_model("cnn_small(width=4)", num_classes=3, head="cosine(bias=False)").head
    CosineHead(in_features=16, num_classes=3, tau=0.05, bias=False, normalize_features=True)
    """
    make_head = head_factory(head)
    if "/" in name:
        if norm not in (None, "batch"):
            raise EquipoiseError(f"{name} has its own norms; exchange them with equipoise.norms.replace_norm")
        return zoo_model(name, num_classes, in_channels, make_head)
    factories: dict[str, Any] = {"make_norm": norm_factory(norm), "make_head": make_head}
    return Spec.parse(name).build("model", num_classes=num_classes, in_channels=in_channels, **factories)


def norm_factory(norm: str | NormFactory | None) -> NormFactory:
    """num_features -> Module."""
    if isinstance(norm, str):
        spec = Spec.parse(norm)
        return lambda num_features: spec.build("norm", num_features=num_features)
    return norm or nn.BatchNorm2d


def head_factory(head: str | HeadFactory | None) -> HeadFactory:
    """in_features, num_classes -> Module."""
    spec = head if callable(head) else Spec.parse(head or "linear")
    if isinstance(spec, Spec):
        return lambda in_features, num_classes: spec.build("head", in_features=in_features, num_classes=num_classes)
    return spec
