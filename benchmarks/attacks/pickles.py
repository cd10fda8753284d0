"""Pickles and torch files that are wrong or hostile, where the tool reads such files: checkpoints and CIFAR's batches.

Nothing in them may run, and none may end in a traceback. A checkpoint that cannot be used is discarded and the run
begins again. Most of the checkpoints come with the seal of a whole file, as an enemy would make them.
"""

from __future__ import annotations

import io
import os
import pickle
import random
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .damage import flip_bit
from .pool import Case, Outcome
from .reference import HalfWay, flat

LIMIT = 60.0
CANARY = "canary"  # the file that a pickle that runs leaves
WATCHED = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen", "socket.connect")

_ran: list[str] = []


class Calls:
    """Pickled as a call of `function` with `arguments`."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.call


def prepare(folder: Path) -> Case:
    import numpy as np
    import torch

    from equipoise.core import EquipoiseError
    from equipoise.core.files import sealed, unsealed
    from equipoise.data.sources.cifar import read_pickle

    half_way = HalfWay(folder / "half_way_pickles")
    whole = unsealed((half_way.folder / "checkpoint.pt").read_bytes())
    assert whole is not None
    state = torch.load(io.BytesIO(whole), weights_only=False)
    batch = {b"data": np.zeros((3, 3072), np.uint8), b"labels": [0, 1, 2]}
    sys.addaudithook(lambda event, _: _ran.append(event) if event in WATCHED else None)

    def case(rng: random.Random, folder: Path) -> Outcome:
        _ran.clear()
        if rng.random() < 0.3:
            path = folder / "batch"
            path.write_bytes(mutated(pickle.dumps(batch, rng.randrange(6)), batch, rng))
            try:
                read_pickle(path, b"labels")
                outcome = Outcome("ok", "a batch is read")
            except EquipoiseError:
                outcome = Outcome("ok", "a batch is refused")
        else:
            content = torch_file(whole, state, rng)
            outcome = _checkpoint(half_way, sealed(content) if rng.random() < 0.8 else content, folder / "half_way")
        if _ran or Path(CANARY).exists():
            return Outcome("silent", f"the file ran something: {', '.join(_ran) or CANARY}")
        return outcome

    return case


def _checkpoint(half_way: HalfWay, content: bytes, folder: Path) -> Outcome:
    folder.mkdir()
    (folder / "checkpoint.pt").write_bytes(content)
    fresh = flat(half_way.taken_up(folder)) == half_way.fresh
    return Outcome("ok", "a checkpoint is discarded" if fresh else "a checkpoint is taken")


def torch_file(whole: bytes, state: dict[str, Any], rng: random.Random) -> bytes:
    """A checkpoint that is damaged, hostile, or holds something else than a checkpoint does."""
    import torch

    way = rng.randrange(5)
    if way == 0:
        return mutated(whole, state, rng)
    buffer = io.BytesIO()
    if way == 1:
        torch.save(_other_state(state, rng), buffer)
        return buffer.getvalue()
    if way == 2:
        torch.save(hostile(rng), buffer, _use_new_zipfile_serialization=rng.random() < 0.5)
        return buffer.getvalue()
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(buffer, "w") as new:
        for info in old.infolist():
            inner = old.read(info)
            if info.filename.endswith("data.pkl"):
                inner = mutated(inner, state, rng)
            elif way == 4 and rng.random() < 0.1:
                inner = inner[: rng.randrange(len(inner) + 1)]
            new.writestr(info.filename, inner)
    return buffer.getvalue()


def _other_state(state: Any, rng: random.Random) -> Any:
    """The same with one part gone or of another kind."""
    import torch

    odd = (None, 3, "x", [], {}, float("nan"), torch.zeros(3), torch.zeros(2, 2, dtype=torch.int8), {"a": 1}, -1)
    if not isinstance(state, dict) or not state or rng.random() < 0.15:
        return rng.choice(odd)
    changed, key = dict(state), rng.choice(list(state))
    if rng.random() < 0.2:
        del changed[key]
    else:
        changed[key] = _other_state(state[key], rng)
    return changed


def mutated(content: bytes, plain: Any, rng: random.Random) -> bytes:
    """A pickle after flips, cuts, other opcodes; or a hostile one in its place."""
    way = rng.randrange(6)
    if way == 0:
        return pickle.dumps(hostile(rng), rng.randrange(6))
    if way == 1:
        return content[: rng.randrange(len(content))]
    if way == 2:
        return rng.choice(BOMBS)
    if way == 3:
        place = rng.randrange(len(content))
        return content[:place] + rng.randbytes(rng.randint(1, 20)) + content[place + rng.randrange(20) :]
    for _ in range(rng.randint(1, 10)):
        content = flip_bit(content, rng)
    return content


def hostile(rng: random.Random) -> Any:
    """A call that leaves the canary, by itself or deep inside something innocent."""
    command = f"touch {CANARY}"
    call = rng.choice(
        (
            Calls(os.system, command),
            Calls(eval, f"open({CANARY!r}, 'w').close()"),
            Calls(exec, f"open({CANARY!r}, 'w').close()"),
            Calls(open, CANARY, "w"),
            Calls(os.mkdir, CANARY),
            Calls(__import__, "this"),
            Calls(Path.touch, Path(CANARY)),
        )
    )
    return rng.choice(
        (call, [call], {"run": {"network": call}, "curves": {}}, {b"data": call, b"labels": [0]}, (1, call))
    )


BOMBS = (
    b"",
    b"\x80\x05",
    b"\x80\xff.",
    b"\x80\x04\x8e" + (2**60).to_bytes(8, "little") + b"x.",  # bytes of an exabyte
    b"\x80\x04]" + b"\x94]" * 5000 + b"a" * 5000 + b".",  # lists in lists
    b"(" * 100_000 + b".",
    b"\x80\x02" + b"(lp0\n" + b"0".join([b"g0\n"] * 1000) + b".",
    b"cos\nsystem\n(S'touch canary'\ntR.",
    b"csubprocess\ncall\n(lp0\nS'touch'\naS'canary'\natR.",
    b'c__builtin__\nexec\n(S\'open("canary","w")\'\ntR.',
    b"ctorch\nload\n(S'canary'\ntR.",
    b"cnumpy\ndtype\n(S'O'\ntR.",
    b"\x80\x02K\x01I" + b"9" * 5000 + b"\n.",
)
