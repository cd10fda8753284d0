"""How often each class occurs where a model is used, as a user writes it."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from ..core import EquipoiseError, checks, did_you_mean
from ..core.words import shown

Shares = Mapping[str, float] | Sequence[float]
Prior = str | Path | Shares
WORDS = ("uniform", "training")
NUMBERS = re.compile(r"[\d\s.,eE+-]+")


def read_prior(
    given: Prior | None, class_names: Sequence[str], class_counts: Sequence[int] | None = None
) -> Tensor | None:
    """Weights of the classes (C,), which need not sum to 1; None where nothing is given.

    `given` is "uniform", "training" (then `class_counts` are the weights), ``"cat=0.9,dog=0.1"``, ``"0.9,0.1"`` in the
    order of the classes, the path of a file, a table by class name, or a sequence in the order of the classes. A file
    is JSON, a table by class name, or lines of the form ``cat,0.9``. Every class must be named: a share of 0 rules it
    out.

    >>> read_prior("cat=9, dog=1", ["cat", "dog"])
    tensor([9., 1.], dtype=torch.float64)
    """
    if given is None:
        return None
    if given == "uniform":
        return torch.ones(len(class_names), dtype=torch.float64)
    if given == "training":
        if class_counts is None:
            raise EquipoiseError("the prior is that of training, and how many images each class had there is not given")
        return torch.tensor(class_counts, dtype=torch.float64)
    if isinstance(given, str | Path):
        given = _from_text(given) if isinstance(given, str) else _from_file(given)
    shares = _by_name(given, class_names) if isinstance(given, Mapping) else _in_order(given, class_names)
    if not sum(shares) > 0:
        raise EquipoiseError("the prior gives every class a share of 0; at least one must be above")
    return torch.tensor(shares, dtype=torch.float64)


def _from_text(text: str) -> Shares:
    if "=" in text:
        return _pairs(text)
    if NUMBERS.fullmatch(text):
        return [_number(f"class {place}", share) for place, share in enumerate(text.split(","))]
    return _from_file(Path(text))


def _pairs(text: str) -> dict[str, float]:
    pairs = {}
    for part in text.split(","):
        name, equals, share = part.rpartition("=")
        if not equals:
            raise EquipoiseError(f"the prior must be written like cat=0.9,dog=0.1; {shown(part)} has no '='")
        pairs[name.strip()] = _number(name.strip(), share)
    return pairs


def _from_file(path: Path) -> Mapping[str, float]:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise EquipoiseError(
            f"the prior {shown(str(path))} cannot be read as a file ({why}); write {', '.join(WORDS)}, shares such as "
            "cat=0.9,dog=0.1, or the path of a JSON or CSV file"
        ) from None
    if path.suffix.lower() == ".json":
        try:
            content = json.loads(text)
        except ValueError as error:
            raise EquipoiseError(f"{path} is not JSON: {error}") from None
        if not isinstance(content, dict):
            raise EquipoiseError(f'{path} must be a table such as {{"cat": 0.9, "dog": 0.1}}')
        return content
    rows = [row for row in csv.reader(text.splitlines()) if row]
    if wrong := next((row for row in rows if len(row) != 2), None):
        raise EquipoiseError(f"{path} must have lines such as cat,0.9; one has {shown(','.join(wrong))}")
    return {name.strip(): _number(name.strip(), share) for name, share in rows}


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise EquipoiseError(f"the prior of {shown(name)} must be a number, not {shown(text)}") from None


def _by_name(given: Mapping[str, float], class_names: Sequence[str]) -> list[float]:
    if unknown := [name for name in given if name not in class_names]:
        names = ", ".join(map(shown, unknown[:5]))
        raise EquipoiseError(f"the prior: there is no class {names}.{did_you_mean(unknown[0], class_names)}")
    if missing := [name for name in class_names if name not in given]:
        names = ", ".join(map(shown, missing[:5]))
        raise EquipoiseError(f"the prior must give each class a share, 0 where it never occurs; it lacks {names}")
    return [_share(name, given[name]) for name in class_names]


def _in_order(given: Sequence[float], class_names: Sequence[str]) -> list[float]:
    if len(given) != len(class_names):
        raise EquipoiseError(f"the prior must have {len(class_names)} shares, one for each class, not {len(given)}")
    return [_share(name, share) for name, share in zip(class_names, given, strict=True)]


def _share(name: str, value: float) -> float:
    try:
        return float(checks.at_least(f"the prior of {name}", value, 0))
    except ValueError as error:
        raise EquipoiseError(str(error)) from None
