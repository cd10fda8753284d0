"""Networks of other libraries, brought to the shape of ours."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from ..core import EquipoiseError, Output, Spec, did_you_mean
from ..core.extras import MissingPackage, missing_message
from ..core.tracing import is_watched
from ._base import Network
from .heads.linear import LinearHead
from .pretraining import Pretraining, for_channels

ZOOS = {"timm": "timm", "torchvision": "torchvision.models"}

# classifiers inside Inception and GoogLeNet, whose logits come beside the network's own while it trains
AUXILIARY = ("AuxLogits", "aux1", "aux2")

# feature maps that are not the last activation: bias loss measures DenseNet's before its last norm
FEATURE_MAPS = {"DenseNet": "features.denseblock4"}


def from_torch(network: nn.Module, head_name: str | None = None) -> TorchNetwork:
    """Wrap a network as torchvision and timm have them, so that it gives `Output`.

    Its last `nn.Linear`, or the module named `head_name`, becomes `head`; the rest becomes `body`. Where there is no
    linear layer, as in SqueezeNet, it is the last 1x1 convolution: `head` is then a linear layer with its weights that
    acts on the mean over positions, without the ReLU that SqueezeNet has between the two. Auxiliary classifiers, as in
    Inception and GoogLeNet, are removed. The network given is taken over, not copied: its own head is empty afterwards.

    >>> body = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    >>> out = from_torch(body.append(torch.nn.Linear(8, 5))).output(torch.zeros(2, 3, 6, 6))
    >>> [tuple(part.shape) for part in out]
    [(2, 5), (2, 8), (2, 8, 4, 4)]
    """
    _remove_auxiliary(network)
    modules = [(name, module) for name, module in network.named_modules() if name]
    linear = [name for name, module in modules if isinstance(module, nn.Linear)]
    convolutions = [name for name, module in modules if _is_1x1(module)]
    kind = type(network).__name__
    if head_name is None and not linear + convolutions:
        raise EquipoiseError(f"{kind} has no nn.Linear inside; name its last layer with head_name=…")
    name = head_name or (linear or convolutions)[-1]
    if name not in linear + convolutions:
        raise EquipoiseError(f"{kind} has no nn.Linear named {name!r}.{did_you_mean(name, linear or convolutions)}")
    return TorchNetwork(network, name)


def _remove_auxiliary(network: nn.Module) -> None:
    """So that what a network gives while it trains is its logits alone."""
    if getattr(network, "aux_logits", False):
        for name, nothing in {"aux_logits": False, **dict.fromkeys(AUXILIARY)}.items():
            if hasattr(network, name):
                setattr(network, name, nothing)


def _is_1x1(module: nn.Module) -> bool:
    return isinstance(module, nn.Conv2d) and module.kernel_size == (1, 1) and module.groups == 1


@torch.no_grad()
def _linear_of(conv: nn.Conv2d) -> nn.Linear:
    """A linear layer that does to a mean over positions what a 1x1 convolution does to each position."""
    linear = nn.Linear(conv.in_channels, conv.out_channels, bias=conv.bias is not None)
    linear.weight = nn.Parameter(conv.weight.flatten(1))
    if conv.bias is not None:
        linear.bias = nn.Parameter(conv.bias)
    return linear


class TorchNetwork(Network):
    """Another library's network without its head (`body`), and the head. Made by `from_torch`.

    `stages` are names for `get_submodule`, such as ``body.layer1``. `feature_map` is the last four-dimensional
    activation, of as many channels as there are features and more than one position if there is such a one;
    a network without any gives None. DenseNet's is before its last norm, as in `equipoise.models.DenseNet`.
    """

    def __init__(self, body: nn.Module, head_name: str) -> None:
        super().__init__()
        head = body.get_submodule(head_name)
        body.set_submodule(head_name, nn.Identity())
        self.body = body
        self._pools_last = isinstance(head, nn.Conv2d)  # the mean over positions came after the head
        self.head: nn.Module = _linear_of(head) if isinstance(head, nn.Conv2d) else head
        self.head_name = head_name
        self.feature_dim = int(self.head.in_features)  # type: ignore[arg-type]
        top = head_name.partition(".")[0]
        self.stages = tuple(f"body.{name}" for name, _ in body.named_children() if name != top)
        # the module whose output is the feature map, of most networks known after the first pass
        known = FEATURE_MAPS.get(type(body).__name__)
        self.map_name = known if known in dict(body.named_modules()) else None
        self._passed = False

    @property
    def sites(self) -> tuple[str, ...]:
        return ("input", *(f"body.{name}" for name, _ in self.body.named_modules() if name))

    def forward(self, x: Tensor) -> Tensor:
        if self._passed or is_watched():
            return self.head(self.body(x))  # no hooks, which exporters do not understand
        return self._first_output(x).logits

    def own_names(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The same for a file with the library's own names."""
        if any(name.startswith("body.") for name in weights):
            return dict(weights)
        ours: dict[str, Tensor] = {}
        for name, value in weights.items():
            top = name.partition(".")[0]
            if name.startswith(f"{self.head_name}."):
                last = name.removeprefix(f"{self.head_name}.")
                ours[f"head.{last}"] = value.flatten(1) if value.dim() == 4 else value  # of a convolution
            elif top not in AUXILIARY or getattr(self.body, top, None) is not None:
                ours[f"body.{name}"] = value
        return ours

    def features(self, x: Tensor) -> Tensor:
        features: Tensor = self.body(x)
        return features

    def output(self, x: Tensor) -> Output:
        if not self._passed:
            return self._first_output(x)
        features, seen = self._watch(x, self._modules_named(self.map_name))
        return Output(self.head(features), features, seen.tensor)

    def _first_output(self, x: Tensor) -> Output:
        """Look at every activation once to find the feature map, and make sure that nothing follows the head."""
        known = self.map_name and self._modules_named(self.map_name, self.head_name)
        features, seen = self._watch(x, known or dict(self.body.named_modules()))
        if not self._is_from_head(features, seen.at_head):
            raise EquipoiseError(
                f"{type(self.body).__name__} does something to the logits after {self.head_name!r}; "
                "name its last layer with from_torch(network, head_name=…)"
            )
        self.map_name, self._passed = seen.name, True
        return Output(self.head(features), features, seen.tensor)

    def _is_from_head(self, features: Any, at_head: Any) -> bool:
        """Whether the body ends where the head was, or for a convolution with a mean over positions."""
        if not self._pools_last:
            return isinstance(features, Tensor) and features is at_head
        if not isinstance(at_head, Tensor) or at_head.dim() != 4:
            return False
        mean = at_head.mean((2, 3))
        if not isinstance(features, Tensor) or features.shape != mean.shape:
            return False
        return features.is_meta or torch.allclose(features, mean, rtol=1e-2, atol=1e-3)

    def _modules_named(self, *names: str | None) -> dict[str, nn.Module]:
        return {name: self.body.get_submodule(name) for name in names if name is not None}

    def _watch(self, x: Tensor, modules: dict[str, nn.Module]) -> tuple[Tensor, _Seen]:
        """One pass with a look at what `modules` put out. Hooks last for the pass: copies of the network stay clean."""
        seen = _Seen(self.feature_dim, self.head_name)
        with ExitStack() as hooks:
            for name, module in modules.items():
                hooks.enter_context(module.register_forward_hook(seen.noting(name)))
            return self.body(x), seen


class _Seen:
    """The best candidate for the feature map so far, and what came to the place of the head."""

    def __init__(self, channels: int, head_name: str) -> None:
        self.channels, self.head_name = channels, head_name
        self.rank = (False, False)
        self.name: str | None = None
        self.tensor: Tensor | None = None
        self.at_head: Any = None

    def noting(self, name: str) -> Any:
        def note(module: nn.Module, args: Any, out: Any) -> None:
            if name == self.head_name:
                self.at_head = out
            elif isinstance(out, Tensor) and out.dim() == 4:
                # pooled activations have one position, and so may the map of a small image: then the last one will do
                rank = (out.shape[1] == self.channels, out.shape[2] * out.shape[3] > 1)
                if rank >= self.rank:
                    self.rank, self.name, self.tensor = rank, name, out

        return note


def zoo_text(text: str) -> str:
    """A network of another library as a recipe has it: however it was written, equal networks are equal texts.

    >>> zoo_text(" timm/resnet18( pretrained = True,drop_rate=0.1)")
    'timm/resnet18(drop_rate=0.1, pretrained=True)'
    """
    library, name, params = zoo_call(text)
    return f"{library}/{Spec(name, tuple(sorted(params.items())))}"


def zoo_call(text: str) -> tuple[str, str, dict[str, Any]]:
    """Library, network, and its parameters."""
    library, _, call = text.strip().partition("/")
    if library not in ZOOS:
        raise EquipoiseError(f"no library of networks is named {library!r}.{did_you_mean(library, ZOOS)}")
    name, paren, inner = call.partition("(")
    return library, name.strip(), dict(Spec.parse(f"{library}({inner}").params) if paren else {}


def zoo_model(text: str, num_classes: int, in_channels: int) -> TorchNetwork:
    """``timm/NAME`` or ``torchvision/NAME``, with parameters of that library: ``timm/resnet18(pretrained=True)``.

    On the meta device no weights are fetched: there they would be lost.
    """
    library, name, params = zoo_call(text)
    network = library_network(text, num_classes, in_channels)
    bridged = from_torch(network)
    if (params.get("pretrained") or params.get("weights")) and not torch.empty(0).is_meta:
        bridged.pretraining = _PRETRAININGS[library](_imported(text, library), name, in_channels, network, params)
    if bridged.head.out_features != num_classes:
        bridged.head = LinearHead(bridged.feature_dim, num_classes)
    return bridged


def library_network(text: str, num_classes: int, in_channels: int) -> nn.Module:
    """The same as that library makes it, with its own names of weights."""
    library, name, params = zoo_call(text)
    zoo = _imported(text, library)
    known = zoo.list_models()
    if name.partition(".")[0] not in known:  # timm names pretrained weights after a dot
        raise EquipoiseError(f"{library} has no network named {name!r}.{did_you_mean(name, known)}")
    if torch.empty(0).is_meta:  # PyTorch 2.6 does not tell by `get_default_device`
        params = {key: value for key, value in params.items() if key not in ("pretrained", "weights")}
    try:
        return _MAKERS[library](zoo, name, num_classes, in_channels, params)
    except EquipoiseError:
        raise
    except Exception as error:  # whatever another library raises at parameters it does not know, or without a network
        raise EquipoiseError(f"{library} cannot make {text}: {error}") from error


def _imported(text: str, library: str) -> Any:
    try:
        return importlib.import_module(ZOOS[library])
    except ImportError:
        raise MissingPackage(missing_message(text, library)) from None
    except RuntimeError as error:  # torchvision, which timm needs too, is made for one version of PyTorch
        raise EquipoiseError(
            f"{text} needs {library}, which does not fit this PyTorch ({torch.__version__}): {error}"
        ) from error


def _from_timm(zoo: Any, name: str, num_classes: int, in_channels: int, params: dict[str, Any]) -> nn.Module:
    return zoo.create_model(name, num_classes=num_classes, in_chans=in_channels, **params)


def _from_torchvision(zoo: Any, name: str, num_classes: int, in_channels: int, params: dict[str, Any]) -> nn.Module:
    if in_channels != 3:
        raise EquipoiseError(f"torchvision's networks take 3 channels, not {in_channels}; timm's take any number")
    if params.get("weights") is None:
        params = {"num_classes": num_classes, **params}
    return zoo.get_model(name, **params)  # pretrained ones must keep their number of classes


def _timm_pretraining(
    zoo: Any, name: str, in_channels: int, network: nn.Module, params: dict[str, Any]
) -> Pretraining | None:
    about: dict[str, Any] = getattr(network, "pretrained_cfg", {})
    if in_channels not in (1, 3) or "mean" not in about:
        return None
    mean, std = (for_channels(about[key], in_channels) for key in ("mean", "std"))
    return Pretraining(f"timm/{name}", mean, std, about.get("input_size", (None,))[-1], about.get("license"))


def _torchvision_pretraining(
    zoo: Any, name: str, in_channels: int, network: nn.Module, params: dict[str, Any]
) -> Pretraining | None:
    weights = params["weights"]
    if isinstance(weights, str):  # "DEFAULT", "IMAGENET1K_V1", or with the name of their class before a dot
        weights = zoo.get_model_weights(name)[weights.rpartition(".")[2]]
    view = weights.transforms()
    size = view.crop_size[0] if hasattr(view, "crop_size") else None
    return Pretraining(f"torchvision/{name} {weights.name}", tuple(view.mean), tuple(view.std), size)


_PRETRAININGS = {"timm": _timm_pretraining, "torchvision": _torchvision_pretraining}
_MAKERS = {"timm": _from_timm, "torchvision": _from_torchvision}
