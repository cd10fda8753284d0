"""`Records`: where a search looks for what runs came to."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ...store import Record


class Records(Protocol):
    """A `Store` is one; what many processes share is another."""

    def has(self, key: str) -> bool: ...

    def get(self, key: str) -> Record: ...

    def valid(self, key: str) -> dict[str, np.ndarray]:
        """Outputs on the validation data."""
