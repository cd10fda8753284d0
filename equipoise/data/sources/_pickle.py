"""Pickles of published sets, read without trust: numeric arrays and plain containers alone."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np


def read_plain(content: bytes) -> Any:
    """What was pickled; text of Python 2 comes as bytes. Whatever could run code raises `pickle.UnpicklingError`."""
    return _PlainUnpickler(io.BytesIO(content), encoding="bytes").load()


def _plain_dtype(code: str | bytes, *_: Any) -> np.dtype[Any]:
    """A numeric type; NumPy trusts what a pickle says of object and record types, so they are refused."""
    dtype = np.dtype(code.decode() if isinstance(code, bytes) else code)
    if dtype.kind not in "biuf":
        raise pickle.UnpicklingError(f"arrays of {dtype} are refused")
    return dtype


def _latin1(text: str, encoding: str) -> bytes:
    """Bytes, as Python 3 writes them for Python 2."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"text as {encoding} is refused")
    return text.encode("latin1")


_MAKE_ARRAY = np.empty(0).__reduce__()[0]  # its address differs between versions of NumPy
_ALLOWED = {
    "numpy.core.multiarray._reconstruct": _MAKE_ARRAY,
    "numpy._core.multiarray._reconstruct": _MAKE_ARRAY,
    "numpy.ndarray": np.ndarray,
    "numpy.dtype": _plain_dtype,
    "_codecs.encode": _latin1,
}


class _PlainUnpickler(pickle.Unpickler):
    """Reads numeric arrays and plain containers; any other name in a pickle could run code, and is refused."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[f"{module}.{name}"]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is refused") from None
