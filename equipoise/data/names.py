"""Names of files and folders: in a message, and those that tell a part."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.escaping import visible

# what folders, shards and tables call the parts of a set
PARTS = {"train": "train", "val": "valid", "valid": "valid", "validation": "valid", "test": "test"}


def listed(names: Sequence[str], most: int = 20, separator: str = ", ") -> str:
    """The first names, fit to be shown, and the number of the rest."""
    more = f"{separator}and {len(names) - most} more" if len(names) > most else ""
    return separator.join(map(visible, names[:most])) + more
