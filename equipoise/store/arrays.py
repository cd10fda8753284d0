"""The outputs of a run as the bytes of an npz file."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

import numpy as np

Arrays = Mapping[str, np.ndarray]


def to_npz(arrays: Arrays) -> bytes:
    """Outputs in half precision, without loss of what matters.

    The largest logit of each row becomes 0: the softmax stays as it is, and the numbers near the largest, which decide
    the prediction, are those that half precision keeps best. They are packed as fast as can be: more effort would make
    files a few percent smaller, and take longer than the training of a head.
    """
    half = {name: array.astype(np.float16) for name, array in arrays.items() if name == "features"}
    if "logits" in arrays:
        logits = arrays["logits"].astype(np.float32)
        below = logits - logits.max(axis=1, keepdims=True)
        half["logits"] = below.clip(min=np.finfo(np.float16).min).astype(np.float16)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name, array in {**arrays, **half}.items():
            with file.open(f"{name}.npy", "w") as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)
    return buffer.getvalue()


def from_npz(data: bytes) -> dict[str, np.ndarray]:
    """What `to_npz` was given, logits in single precision; a ValueError if `data` is no such file."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            return {name: file[name].astype(np.float32) if name == "logits" else file[name] for name in file.files}
    except MemoryError:
        raise
    except Exception as error:  # a file without a checksum can break the readers of zip and npy in any way
        raise ValueError(f"its arrays cannot be read ({type(error).__name__})") from None
