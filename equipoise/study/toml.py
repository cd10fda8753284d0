"""Reads a TOML file of a user's, where whatever is wrong becomes a sentence; and writes options as TOML."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core import EquipoiseError
from ..core.words import shown

LARGEST = 1_000_000  # bytes; the longest study of ours has 3,000


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a file in UTF-8, with or without the mark that some editors put in front."""
    text = _text(path)
    try:
        plain: dict[str, Any] = tomllib.loads(text)
        _check_numbers(plain)
        return plain
    except RecursionError:
        raise EquipoiseError(f"{path} is not valid TOML: its brackets are nested too deeply") from None
    except ValueError as error:  # also of whole numbers with thousands of digits
        said = str(error).partition("; use sys")[0]
        short = said if len(said) < 300 else f"{said[:200]} … {said[-50:]}"  # the place comes last
        raise EquipoiseError(f"{path} is not valid TOML: {short}") from None


def _check_numbers(value: Any) -> None:
    """TOML's whole numbers have 64 bits; Python reads longer ones, and can then not even print them."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            _check_numbers(inner)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"a whole number is too large ({shown(value, 20)}); it may have 64 bits")


def _text(path: Path) -> str:
    # Path.is_dir and Path.exists raise where a name is too long
    if os.path.isdir(path):
        raise EquipoiseError(f"{path} is a folder; give the path of a TOML file{_remedy_for_folder(path)}")
    if not os.path.exists(path):
        raise EquipoiseError(f"{path} is not there; give the path of a TOML file, such as studies/demo.toml")
    if not path.is_file():
        raise EquipoiseError(f"{path} is not a regular file; give the path of a TOML file")
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise EquipoiseError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > LARGEST:
        raise EquipoiseError(f"{path} has more than {LARGEST:,} bytes, so it is no study; give the path of a TOML file")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise EquipoiseError(
            f"{path} cannot be read: it is not text in UTF-8 (byte {error.start:,} is {content[error.start]:#04x}); "
            "save it as UTF-8"
        ) from None


def _remedy_for_folder(path: Path) -> str:
    """What to write for a folder of images, which is easily taken for what a study is run on."""
    if (path / "store.json").is_file():
        return f". It holds results: 'equipoise report {path}' shows them"
    if not any(child.is_dir() for child in _children(path)):
        return ""
    return (
        f". 'equipoise compare {path}' compares methods on the images in it, one folder per class, and keeps the best "
        "model. To choose the methods yourself, write a file such as this one and run it:\n\n"
        f'baseline = "plain"\n\n[task]\nname = "folder(path={str(path)!r}, size=64)"\n\n[base]\nmodel = "resnet18"\n'
        f'epochs = 30\n\n[methods.plain]\n\n[methods.balanced]\nloss = "balanced_softmax"'
    )


def _children(path: Path) -> list[Path]:
    try:
        return list(path.iterdir())
    except OSError:
        return []


def toml_pairs(options: Mapping[str, Any]) -> list[str]:
    """A line for each option.

    >>> toml_pairs({"lr": 0.1, "loss": "focal", "lr*weight_decay": [1e-4]})
    ['lr = 0.1', 'loss = "focal"', '"lr*weight_decay" = [0.0001]']
    """
    return [f"{toml_key(key)} = {_value(value)}" for key, value in options.items()]


def toml_key(name: str) -> str:
    """A name as a key, in quotation marks where it needs them."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(toml_pairs(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)  # JSON's texts, numbers and truth values are TOML's too
