"""Results that are written as several files of one name: a page, a table and the data behind it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.files import write_whole
from ...store import explained


def write_each(folder: Path, name: str, contents: Mapping[str, str]) -> None:
    """Write `contents`, by the ending of each file, as name.ENDING into `folder`, which is made if need be."""
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for ending, text in contents.items():
            write_whole(folder / f"{name}.{ending}", text.encode("utf-8", "backslashreplace"))


def pretty_json(plain: Mapping[str, Any]) -> str:
    return json.dumps(plain, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
