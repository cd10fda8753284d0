"""Variables of MATLAB files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.extras import require
from ._base import damaged, read_bytes


def read_mat(path: Path, *names: str) -> list[NDArray[Any]]:
    """The variables called `names`, without dimensions of one."""
    require(f"reading {path.name}", "scipy")
    from scipy.io import loadmat

    content, expected = read_bytes(path), f"a MATLAB file with {', '.join(names)}"
    try:
        found = loadmat(io.BytesIO(content), squeeze_me=True, variable_names=names)
    except Exception as error:  # a damaged file may raise almost anything
        raise damaged(path, expected, f"{type(error).__name__}: {error}") from error
    if lost := [name for name in names if name not in found]:
        raise damaged(path, expected, f"no {', '.join(lost)}")
    return [found[name] for name in names]


def whole_numbers(path: Path, name: str, array: NDArray[Any]) -> NDArray[np.int64]:
    """The list of whole numbers that a variable is, whatever type it was saved as."""
    found = np.atleast_1d(array)
    if found.ndim != 1 or found.dtype.kind not in "iuf" or not (found == np.rint(found)).all():
        raise damaged(path, f"{name} as a list of whole numbers", f"{found.dtype} {found.shape}")
    return found.astype(np.int64)
