"""audited.json: what an audit found of a study's images that bears on its splits."""

from __future__ import annotations

from dataclasses import dataclass

from .filled import Filled


@dataclass(frozen=True)
class Audited(Filled):
    """`copies` images are there more than once, `torn` images or groups lie in two parts.

    `group` is the regular expression that file names suggest, if they do; `place` is the folder of the audit. `saw`
    tells audits apart that saw other files, and `outdated` what happened to the images between audit and study.
    """

    place: str
    copies: int
    torn: int
    group: str | None
    saw: str = ""
    outdated: str = ""

    FILE = "audited.json"
