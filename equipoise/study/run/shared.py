"""Where the images of a study's tasks lie while it runs. A node of a cluster imports this, so it needs no PyTorch."""

from __future__ import annotations

from pathlib import Path

from ...store import Store


def cache_of(store: Store) -> Path:
    """The folder of the images; on a node of a cluster many stores share one."""
    return (store.path / "shared").resolve()
