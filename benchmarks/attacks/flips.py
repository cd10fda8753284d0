"""One bit of a checkpoint, of weights or of kept outputs flips: it is noticed, or nothing of what is read changes.

A damaged checkpoint must also not stop its run: it begins again.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import reference
from .damage import flip_bit
from .pool import Case, Outcome
from .reference import ANALYZE, RUN, STUDY, HalfWay, flat, replace

LIMIT = 60.0


def prepare(folder: Path) -> Case:
    from equipoise.core import EquipoiseError
    from equipoise.store import Store

    made = reference.make(folder / "study", STUDY, RUN, ANALYZE) / "out"
    half_way = HalfWay(folder / "half_way_flips")
    store = Store(made)
    keys = [record.key for record in store.records()]
    readers: dict[str, Callable[[Store, str], Any]] = {
        "weights.safetensors": lambda store, key: store.weights(key),
        "valid.npz": lambda store, key: _bytes(store.valid(key)),
        "test.npz": lambda store, key: _bytes(store.test_sealed(key)),
        "progress.npz": lambda store, key: _bytes(store.progress(key)),
    }

    def case(rng: random.Random, folder: Path) -> Outcome:
        if rng.random() < 0.5:
            return _checkpoint(half_way, rng, folder / "half")
        name, key = rng.choice(sorted(readers)), rng.choice(keys)
        if not (made / "runs" / key / name).exists():
            name = "test.npz"
        reference.copy(made, folder / "out")
        path = folder / "out" / "runs" / key / name
        replace(path, flip_bit(path.read_bytes(), rng))
        try:
            found = readers[name](Store(folder / "out"), key)
        except EquipoiseError:
            return Outcome("ok", f"refused {name}")
        if found != readers[name](store, key):
            return Outcome("silent", f"{name} of {key} is read as something else")
        return Outcome("ok", f"the same from {name}")

    return case


def _checkpoint(half_way: HalfWay, rng: random.Random, folder: Path) -> Outcome:
    reference.copy(half_way.folder, folder)
    path = folder / "checkpoint.pt"
    replace(path, flip_bit(path.read_bytes(), rng))
    found = flat(half_way.taken_up(folder))
    if found == half_way.fresh:
        return Outcome("ok", "begins again")
    if found == half_way.state:
        return Outcome("ok", "the same from checkpoint.pt")
    other = [a[0] for a, b in zip(found, half_way.state, strict=False) if a != b]
    return Outcome("silent", f"the checkpoint is taken with other values: {', '.join(other[:5])}")


def _bytes(arrays: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    return {name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()}
