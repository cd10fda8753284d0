"""confused.json: the classes that the best method of a study takes for one another most often, with pictures."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from .filled import Filled

JPEG = b"\xff\xd8\xff"  # how such a file begins


@dataclass(frozen=True)
class ConfusedPair:
    """Over all runs, `share` of the test images of class `true` were taken for `other`.

    Pictures are JPEG files in base64: of both classes, as they are recognised, and of `true` taken for `other`.
    """

    true: str
    other: str
    share: float
    of_true: tuple[str, ...]
    of_other: tuple[str, ...]
    mistaken: tuple[str, ...]

    def __post_init__(self) -> None:
        for picture in (*self.of_true, *self.of_other, *self.mistaken):
            if not base64.b64decode(picture, validate=True).startswith(JPEG):
                raise ValueError("a picture is no JPEG file")


@dataclass(frozen=True)
class Confused(Filled):
    """The worst pairs of `method` first; `keys` are those of the runs that were looked at."""

    method: str
    keys: tuple[str, ...]
    pairs: tuple[ConfusedPair, ...]

    FILE = "confused.json"
