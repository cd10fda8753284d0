"""JSON that carries its own checksum, as its first entry: of the whole text with zeros in the checksum's place.

Files of before there were checksums, or written by hand, have none and are read as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..core.files import checksum

_NAME = "checksum"
_BLANK = "0" * 32
_HEAD = re.compile(rf'^\{{\s*"{_NAME}":\s*"([0-9a-f]{{32}})"'.encode())


def to_bytes(content: Mapping[str, Any], *, indent: int | None = 1) -> bytes:
    """The text of a file; without `indent` on one line and without spaces.

    Names that are not Unicode, as a folder's can be, stay what they are: the escape of half a character is JSON too.
    """
    spaces = None if indent else (",", ":")
    own = {name: value for name, value in content.items() if name != _NAME}
    text = json.dumps({_NAME: _BLANK, **own}, indent=indent, ensure_ascii=False, separators=spaces)
    raw = text.encode("utf-8", "backslashreplace")
    return raw.replace(_BLANK.encode(), checksum(raw).encode(), 1)


def has_checksum(raw: bytes) -> bool:
    return _HEAD.match(raw) is not None


def from_bytes(raw: bytes) -> Any:
    """The content without its checksum; a ValueError says what is wrong with the text."""
    head = _HEAD.match(raw)
    if head:
        start, end = head.span(1)
        if checksum(raw[:start] + _BLANK.encode() + raw[end:]) != head[1].decode():
            raise ValueError("its checksum does not match")
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    if isinstance(content, dict) and content.pop(_NAME, None) is not None and not head:
        raise ValueError("its checksum is none")
    return content
