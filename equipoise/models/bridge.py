"""Networks of other libraries, brought to the shape of ours."""

from __future__ import annotations

import importlib
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from ..core import EquipoiseError, Output, Spec, did_you_mean
from ..core.extras import MissingPackage, missing_message
from ..core.tracing import is_watched
from ._base import Network
from .heads.linear import LinearHead

ZOOS = {"timm": "timm", "torchvision": "torchvision.models"}


def from_torch(network: nn.Module, head_name: str | None = None) -> TorchNetwork:
    """Wrap a network as torchvision and timm have them, so that it gives `Output`.

    Its last `nn.Linear`, or the module named `head_name`, becomes `head`; the rest becomes `body`. The network given
    is taken over, not copied: its own head is empty afterwards.

    >>> body = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    >>> out = from_torch(body.append(torch.nn.Linear(8, 5))).output(torch.zeros(2, 3, 6, 6))
    >>> [tuple(part.shape) for part in out]
    [(2, 5), (2, 8), (2, 8, 4, 4)]
    """
    linear = [name for name, module in network.named_modules() if name and isinstance(module, nn.Linear)]
    if head_name is None and not linear:
        raise EquipoiseError(f"{type(network).__name__} has no nn.Linear inside; name its last layer with head_name=…")
    name = head_name or linear[-1]
    if name not in linear:
        raise EquipoiseError(f"{type(network).__name__} has no nn.Linear named {name!r}.{did_you_mean(name, linear)}")
    return TorchNetwork(network, name)


class TorchNetwork(Network):
    """Another library's network without its head (`body`), and the head. Made by `from_torch`.

    `stages` are names for `get_submodule`, such as ``body.layer1``. `feature_map` is the last four-dimensional
    activation, of as many channels as there are features and more than one position if there is such a one;
    a network without any gives None.
    """

    def __init__(self, body: nn.Module, head_name: str) -> None:
        super().__init__()
        head = body.get_submodule(head_name)
        body.set_submodule(head_name, nn.Identity())
        self.body = body
        self.head = head
        self.head_name = head_name
        self.feature_dim = int(head.in_features)  # type: ignore[arg-type]
        top = head_name.partition(".")[0]
        self.stages = tuple(f"body.{name}" for name, _ in body.named_children() if name != top)
        self.map_name: str | None = None  # the module whose output is the feature map, known after the first pass
        self._passed = False

    @property
    def sites(self) -> tuple[str, ...]:
        return ("input", *(f"body.{name}" for name, _ in self.body.named_modules() if name))

    def forward(self, x: Tensor) -> Tensor:
        if self._passed or is_watched():
            return self.head(self.body(x))  # no hooks, which exporters do not understand
        return self._first_output(x).logits

    def output(self, x: Tensor) -> Output:
        if not self._passed:
            return self._first_output(x)
        watched = {} if self.map_name is None else {self.map_name: self.body.get_submodule(self.map_name)}
        features, seen = self._watch(x, watched)
        return Output(self.head(features), features, seen.tensor)

    def _first_output(self, x: Tensor) -> Output:
        """Look at every activation once to find the feature map, and make sure that nothing follows the head."""
        features, seen = self._watch(x, dict(self.body.named_modules()))
        if not isinstance(features, Tensor) or features is not seen.at_head:
            raise EquipoiseError(
                f"{type(self.body).__name__} does something to the logits after {self.head_name!r}; "
                "name its last layer with from_torch(network, head_name=…)"
            )
        self.map_name, self._passed = seen.name, True
        return Output(self.head(features), features, seen.tensor)

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
    library, name, params = _zoo_call(text)
    return f"{library}/{Spec(name, tuple(sorted(params.items())))}"


def _zoo_call(text: str) -> tuple[str, str, dict[str, Any]]:
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
    library, name, params = _zoo_call(text)
    zoo = _imported(text, library)
    known = zoo.list_models()
    if name.partition(".")[0] not in known:  # timm names pretrained weights after a dot
        raise EquipoiseError(f"{library} has no network named {name!r}.{did_you_mean(name, known)}")
    if torch.empty(0).is_meta:  # PyTorch 2.6 does not tell by `get_default_device`
        params = {key: value for key, value in params.items() if key not in ("pretrained", "weights")}
    try:
        network = _MAKERS[library](zoo, name, num_classes, in_channels, params)
    except EquipoiseError:
        raise
    except Exception as error:  # whatever another library raises at parameters it does not know, or without a network
        raise EquipoiseError(f"{library} cannot make {text}: {error}") from error
    bridged = from_torch(network)
    if bridged.head.out_features != num_classes:
        bridged.head = LinearHead(bridged.feature_dim, num_classes)
    return bridged


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


_MAKERS = {"timm": _from_timm, "torchvision": _from_torchvision}
