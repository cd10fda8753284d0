"""`create_model`: a network from texts."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import nn

from ..core import EquipoiseError, Spec
from ._base import HeadFactory, Network, NormFactory
from .bridge import zoo_call, zoo_model
from .weights import FreshHead, load_weights, path_of, read_weights

WISHES = ("pretrained", "weights")  # parameters of a network that ask for trained weights
DEFAULTS = {"norm": "batch", "head": "linear"}


def create_model(
    name: str,
    num_classes: int,
    *,
    norm: str | NormFactory | None = None,
    head: str | HeadFactory | None = None,
    in_channels: int = 3,
    weights: str | None = None,
) -> Network:
    """A network by name, with the norm and head of your choice.

    Args:
        name: a model with its parameters, such as ``resnet32`` or ``cnn_small(width=32)``; ``timm/NAME`` and
            ``torchvision/NAME`` are networks of those libraries.
        num_classes: C.
        norm: None for batch norm, text such as ``ghost(ghost_size=16)``, or a function of the number of channels.
        head: None for the linear one, text such as ``cosine(tau=0.1)``, or a function of d and C.
        in_channels: channels of the images.
        weights: a file to start from, safetensors or a checkpoint of PyTorch, with the names of `state_dict` or, for
            another library's network, of that library. A head that does not fit stays as it was drawn, with the
            warning `FreshHead`; anything else that does not fit is an error. Not read for the meta device.

    A network of another library keeps its own norms and linear head unless others than batch norm and the linear head
    are chosen. Norms are then exchanged as by `equipoise.norms.replace_norm`, which keeps eps, pretrained values and,
    unless the text names a decay, the momentum.

    >>> create_model("cnn_small(width=4)", num_classes=3, head="cosine(bias=False)").head
    CosineHead(in_features=16, num_classes=3, tau=0.05, bias=False, normalize_features=True, keep=1.0, prior=None)
    """
    if "/" in name:
        network: Network = zoo_model(name, num_classes, in_channels)
        if not _is_default("head", head):
            network.head = head_factory(head)(network.feature_dim, num_classes)
        _load(network, weights)
        if not _is_default("norm", norm):
            _exchange_norms(network, name, norm)
        return network
    factories: dict[str, Any] = {"make_norm": norm_factory(norm), "make_head": head_factory(head)}
    network = Spec.parse(name).build("model", num_classes=num_classes, in_channels=in_channels, **factories)
    _load(network, weights)
    return network


def is_pretrained(name: str) -> bool:
    """Whether the text of a network asks for trained weights.

    >>> is_pretrained("efficientnet_lite0(pretrained=True)"), is_pretrained("torchvision/resnet18")
    (True, False)
    """
    params = zoo_call(name)[2] if "/" in name else dict(Spec.parse(name).params)
    return any(params.get(wish) for wish in WISHES)


def unpretrained(name: str) -> str:
    """The same network without the wish for trained weights.

    >>> unpretrained("efficientnet_lite0(pretrained=True)"), unpretrained("timm/resnet18(pretrained=True)")
    ('efficientnet_lite0', 'timm/resnet18')
    """
    library, name, params = (
        zoo_call(name) if "/" in name else ("", Spec.parse(name).name, dict(Spec.parse(name).params))
    )
    left = Spec(name, tuple((key, value) for key, value in params.items() if key not in WISHES))
    return f"{library}/{left}" if library else str(left)


def _load(network: Network, weights: str | None) -> None:
    if weights is None or torch.empty(0).is_meta:
        return
    note = load_weights(network, read_weights(weights), str(path_of(weights)))
    if note is not None:
        warnings.warn(FreshHead(note), stacklevel=3)


def _exchange_norms(network: Network, name: str, norm: str | NormFactory | None) -> None:
    from ..norms import replace_norm  # an option of few networks: the others do not wait for this import

    try:
        replace_norm(network.get_submodule("body"), norm if isinstance(norm, str) else norm_factory(norm))
    except ValueError as error:
        raise EquipoiseError(f"{name} cannot have the norm {norm!r}: {error}") from error


def _is_default(kind: str, choice: Any) -> bool:
    """Whether a choice says no more than not to choose, as the resolved text of a recipe does."""
    if isinstance(choice, str):
        return Spec.parse(choice).resolved(kind) == Spec(DEFAULTS[kind]).resolved(kind)
    return choice is None


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
