"""audited.json: what an audit found of a study's images that bears on its splits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .filled import filled


@dataclass(frozen=True)
class Audited:
    """`copies` images are there more than once, `torn` images or groups lie in two parts.

    `group` is the regular expression that file names suggest, if they do; `place` is the folder of the audit.
    """

    place: str
    copies: int
    torn: int
    group: str | None

    FILE = "audited.json"

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Audited:
        return filled(cls, plain)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
