"""The processor's cores that this process may use."""

from __future__ import annotations

import os


def core_count() -> int:
    """How many they are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
