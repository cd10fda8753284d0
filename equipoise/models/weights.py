"""Weights from a file: what it holds, whether it fits a network, and which file it was.

A file is written as text, ``resnet50.safetensors``. With its content, ``resnet50.safetensors#0123456789abcdef``, the
text says what the file held when a recipe was made of it: a file that has changed since is refused.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..core import EquipoiseError
from ..core.extras import require
from ..core.words import shown
from ._base import Network

WRAPPERS = ("state_dict", "model")  # under which checkpoints keep the weights
PREFIX = "module."  # of every name, where the network was trained by several processes
COUNTER = "num_batches_tracked"  # of a norm; old files lack it, and nothing here reads it
_CONTENT = re.compile(r"#[0-9a-f]{16}$")
_MOST_NAMES = 8  # that a message lists


class FreshHead(UserWarning):
    """The head of a file does not fit, so the network's own stays as it was drawn."""


def with_content(text: str) -> str:
    """The file with its content, where the text does not say it yet."""
    return text if _CONTENT.search(text) else f"{text}#{_content_of(_found(text))}"


def content_of(text: str) -> str:
    """What a file holds, wherever it lies.

    >>> content_of("weights/resnet50.safetensors#0123456789abcdef")
    '0123456789abcdef'
    """
    return with_content(text)[-16:]


def path_of(text: str) -> Path:
    return Path(_CONTENT.sub("", text)).expanduser()


def file_near(text: str, folder: Path) -> str:
    """A relative path made absolute where `folder`, that of a study's file, has the file and the working folder not."""
    with suppress(OSError, ValueError, RuntimeError):  # no path at all: who reads it says so
        near = Path(folder, path_of(text)).resolve()
        if not path_of(text).exists() and near.is_file():
            return str(near) + "".join(_CONTENT.findall(text))
    return text


def _found(text: str) -> Path:
    path = path_of(text)
    if not path.is_file():
        raise EquipoiseError(f"weights: there is no file {_quoted(path)}; write the path of a .safetensors or .pt file")
    return path


def _content_of(path: Path) -> str:
    stat = path.stat()
    return _hashed(path, stat.st_size, stat.st_mtime_ns, stat.st_ino)


@lru_cache(maxsize=64)  # every method of a study names the same file
def _hashed(path: Path, *stamp: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def read_weights(text: str) -> dict[str, Tensor]:
    """The weights in a file by name: safetensors, or a checkpoint of PyTorch that holds nothing but plain data."""
    path = _found(text)
    data = path.read_bytes()
    content = hashlib.sha256(data).hexdigest()[:16]
    if _CONTENT.search(text) and content != content_of(text):
        raise EquipoiseError(
            f"weights: {_quoted(path)} has changed since the study began: it was {content_of(text)}, now it is "
            f"{content}; put the file back, or write a study with the new one"
        )
    with torch.device("cpu"):  # whatever the default: on the meta device the numbers would be lost
        tensors = _from_safetensors(data, path) if path.suffix == ".safetensors" else _from_checkpoint(data, path)
    return _unwrapped(tensors, path)


def _from_safetensors(data: bytes, path: Path) -> Any:
    require(f"reading {path.name}", "safetensors")
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return load(data)
    except SafetensorError as error:
        raise EquipoiseError(f"weights: {_quoted(path)} cannot be read as safetensors: {error}") from error


def _from_checkpoint(data: bytes, path: Path) -> Any:
    try:
        return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError, KeyError, ValueError) as error:
        why = str(error).strip().partition("\n")[0]
        raise EquipoiseError(
            f"weights: {_quoted(path)} cannot be read as tensors alone: {why} Save them with "
            "torch.save(network.state_dict(), path)"
        ) from error


def _unwrapped(content: Any, path: Path) -> dict[str, Tensor]:
    for wrapper in WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    if (
        not isinstance(content, Mapping)
        or not content
        or not all(isinstance(value, Tensor) for value in content.values())
    ):
        raise EquipoiseError(
            f"weights: {_quoted(path)} must hold tensors by name, as network.state_dict() gives them, at the top or "
            f"under {' or '.join(map(repr, WRAPPERS))}"
        )
    prefixed = all(name.startswith(PREFIX) for name in content)
    return {name.removeprefix(PREFIX) if prefixed else name: value for name, value in content.items()}


def load_weights(network: Network, weights: Mapping[str, Tensor], source: str) -> str | None:
    """Put the weights of `source` into the network; where its head does not fit, the network's stays and this says so.

    Everything else must be there, with the same shapes. Moving averages may be those of other norms.
    """
    state = network.own_names(weights)
    theirs = {name: tuple(value.shape) for name, value in state.items() if name.startswith("head.")}
    ours = {f"head.{name}": tuple(value.shape) for name, value in network.head.state_dict().items()}
    if theirs == ours:
        load_exactly(network, state, source)
        return None
    load_exactly(network, {k: v for k, v in state.items() if k not in theirs}, source, but=ours.keys())
    return f"The head is drawn anew: {_quoted(source)} has {_shapes(theirs)}, the network {_shapes(ours)}."


def load_exactly(
    network: nn.Module, state: Mapping[str, Tensor], source: str, *, but: Collection[str] = frozenset()
) -> None:
    """Put the weights of `source` into any network, `but` those of these names; what does not fit is an error.

    Everything must be there, with the same shapes.
    """
    own = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    unlike = [name for name, value in state.items() if own.get(name, value.shape) != tuple(value.shape)]
    missing, unexpected = network.load_state_dict({k: v for k, v in state.items() if k not in unlike}, strict=False)
    expected = own.keys() - unlike - set(but)
    wrong = {
        "the file lacks": [name for name in missing if name in expected and not name.endswith(COUNTER)],
        "the network has no": unexpected,
        "other shapes have": [f"{name} {tuple(state[name].shape)}, not {own[name]}" for name in unlike],
    }
    if any(wrong.values()):
        lines = "; ".join(f"{what} {_listed(names)}" for what, names in wrong.items() if names)
        raise EquipoiseError(f"weights: {_quoted(source)} does not fit {_kind(network)}: {lines}")


def _quoted(path: Path | str) -> str:
    return shown(str(path), 1_000)  # a path is no help in part


def _kind(network: nn.Module) -> str:
    return type(getattr(network, "body", network)).__name__


def _shapes(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in shapes.items()) or "none"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
