"""A trained network from its checkpoint: ours, another library's, one that a user's function makes, or an export."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from ..core import EquipoiseError
from ..core.words import counted, shown
from ..models import Pretraining, create_model
from ..models.bridge import ZOOS, library_network, zoo_call
from ..models.pretraining import IMAGENET
from ..models.weights import load_exactly, load_weights, read_weights

EXPORTED = ".pt2"


@dataclass(frozen=True)
class Origin:
    """A network and where it comes from.

    `lines` are the Python that makes it, for a script; the weights are loaded after them unless it was exported.
    `wanted` says which images its weights are used to, if that is known; `size` is the only size it takes, if there is
    one. `model` is the text that `create_model` makes the network from, if it does.
    """

    network: nn.Module
    lines: tuple[str, ...]
    channels: int = 3
    size: int | None = None
    model: str | None = None
    wanted: Pretraining | None = None
    exported: Path | None = None


def load_network(checkpoint: Path, model: str | None, num_classes: int) -> Origin:
    """The network `model` with the weights in `checkpoint`; a .pt2 file is the network itself.

    `model` is ``resnet32`` or another of ours, ``timm/NAME``, ``torchvision/NAME``, or ``module:function`` for a
    function that makes the network, with `num_classes` if it has such a parameter.
    """
    if checkpoint.suffix == EXPORTED:
        if model is not None:
            raise EquipoiseError(f"{checkpoint.name} is a whole network; leave --model out")
        return _exported(checkpoint)
    if model is None:
        raise EquipoiseError(
            f"{checkpoint.name} has weights alone; say which network they are of: --model resnet32, --model timm/NAME, "
            "--model torchvision/NAME, or --model module:function with a function of yours that makes it"
        )
    weights = read_weights(str(checkpoint))
    if ":" in model:
        return _made_by(model, weights, checkpoint, num_classes)
    if "/" in model and not any(name.startswith("body.") for name in weights):  # those are names that we give
        return _of_library(model, weights, checkpoint, num_classes)
    return _of_ours(model, weights, checkpoint, num_classes)


def _of_ours(model: str, weights: Mapping[str, Tensor], checkpoint: Path, num_classes: int) -> Origin:
    with torch.device("meta"):
        plan = create_model(model, num_classes)
    channels = _channels(plan, plan.own_names(weights))
    network = create_model(model, num_classes, in_channels=channels)
    note = load_weights(network, weights, str(checkpoint))
    if note is not None:
        raise EquipoiseError(
            f"{checkpoint.name} does not fit {num_classes} classes; name all of them with --classes. {note}"
        )
    arguments = f"{model!r}, num_classes={num_classes}" + ("" if channels == 3 else f", in_channels={channels}")
    lines = ("from equipoise.models import create_model", f"network = create_model({arguments})")
    wanted = network.pretraining or (IMAGENET if "/" in model else None)
    return Origin(network, lines, channels, model=model, wanted=wanted)


def _of_library(model: str, weights: Mapping[str, Tensor], checkpoint: Path, num_classes: int) -> Origin:
    library, name, given = zoo_call(model)
    params = {key: value for key, value in given.items() if key not in ("pretrained", "weights")}  # the file has them
    text = f"{library}/{name}" + (f"({', '.join(f'{k}={v!r}' for k, v in params.items())})" if params else "")
    with torch.device("meta"):
        channels = _channels(library_network(text, num_classes, 3), weights)
    network = library_network(text, num_classes, channels)
    load_exactly(network, weights, str(checkpoint))
    params = {"num_classes": num_classes, **({"in_chans": channels} if channels != 3 else {}), **params}
    maker = "create_model" if library == "timm" else "get_model"
    arguments = ", ".join([repr(name), *(f"{key}={value!r}" for key, value in params.items())])
    lines = (f"from {ZOOS[library]} import {maker}", f"network = {maker}({arguments})")
    return Origin(network, lines, channels, wanted=_wanted(model, network))


def _wanted(model: str, network: nn.Module) -> Pretraining:
    """Which images a library's network is used to: timm notes it, of the others it is what ImageNet's usually are."""
    about: Mapping[str, Any] = getattr(network, "pretrained_cfg", {})
    if "mean" not in about or "std" not in about:
        return IMAGENET
    size = about.get("input_size", (IMAGENET.size,))[-1]
    return Pretraining(model, tuple(about["mean"]), tuple(about["std"]), size)


def _made_by(text: str, weights: Mapping[str, Tensor], checkpoint: Path, num_classes: int) -> Origin:
    module_name, _, name = text.partition(":")
    function = _function(module_name, name)
    arguments = {"num_classes": num_classes} if "num_classes" in _parameters(function) else {}
    try:
        network = function(**arguments)
    except (Exception, SystemExit) as error:
        raise EquipoiseError(f"--model {text} did not make a network: {_told(error)}") from error
    if not isinstance(network, nn.Module):
        raise EquipoiseError(f"--model {text} must return a torch.nn.Module, and returned {shown(network)}")
    load_exactly(network, weights, str(checkpoint))
    call = ", ".join(f"{key}={value}" for key, value in arguments.items())
    lines = (
        f"sys.path.insert(0, {str(Path.cwd())!r})  # the folder that {module_name} was found from",
        f"from {module_name} import {name}",
        f"network = {name}({call})",
    )
    return Origin(network, lines, _channels(network, weights))


def _function(module_name: str, name: str) -> Callable[..., Any]:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does: the module may lie in the working folder
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise EquipoiseError(
            f"--model {module_name}:{name}: {module_name} cannot be imported: {_told(error)}"
        ) from error
    function = getattr(module, name, None)
    if not callable(function):
        raise EquipoiseError(f"--model {module_name}:{name}: {module_name} has no function {name!r}")
    return function


def _parameters(function: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # of a function written in C
        return {}


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _channels(network: nn.Module, weights: Mapping[str, Tensor]) -> int:
    """Of the images: 1 where the first convolution has weights for one channel, else 3."""
    first = next((name for name, module in network.named_modules() if isinstance(module, nn.Conv2d)), None)
    weight = weights.get(f"{first}.weight")
    return 1 if weight is not None and weight.dim() == 4 and weight.shape[1] == 1 else 3


# -- exported programs -------------------------------------------------------------------------------------------------


class Exported(nn.Module):
    """An exported program as a module: it takes any number of images, whatever number it was exported for."""

    def __init__(self, program: nn.Module, batch_size: int | None) -> None:
        super().__init__()
        self.program, self.batch_size = program, batch_size

    def forward(self, x: Tensor) -> Tensor:
        if self.batch_size is None:
            return self.program(x)
        missing = -len(x) % self.batch_size
        filled = torch.cat([x, x[-1:].expand(missing, *x.shape[1:])])
        return torch.cat([self.program(part) for part in filled.split(self.batch_size)])[: len(x)]

    def train(self, mode: bool = True) -> Self:
        """Nothing: a program stays in the mode it was exported in."""
        return self


def _exported(path: Path) -> Origin:
    try:
        program = torch.export.load(path)
        module = program.module()
        (name,) = program.graph_signature.user_inputs
        shape = next(node.meta["val"].shape for node in program.graph.nodes if node.name == name)
    except Exception as error:  # what a file that is no program of this PyTorch raises is of many kinds
        raise EquipoiseError(
            f"{path.name} cannot be read as an exported network of one input: {_told(error)}"
        ) from error
    n, channels, height = (size if isinstance(size, int) else None for size in shape[:3])
    lines: tuple[str, ...] = (f"network = torch.export.load(here / {path.name!r}).module()",)
    if n is not None:
        lines = (
            f"program = torch.export.load(here / {path.name!r}).module()  # takes exactly {counted(n, 'input')}",
            f"network = lambda x: torch.cat([program(row.expand({n}, *row.shape))[:1] for row in x])",
        )
    return Origin(Exported(module, n), lines, 1 if channels == 1 else 3, height, exported=path)
