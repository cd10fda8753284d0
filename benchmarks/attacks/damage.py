"""What happens to files: bits flip, ends are cut, contents are swapped, JSON says something else."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from .reference import replace

ODD_JSON = (None, True, 0, -1, 1.5, 1e308, "", "x", [], [[]], {}, {"a": 1}, "9" * 5000, ["x"] * 3, 2**70, "../../x")


def flip_bit(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def damage(folder: Path, rng: random.Random) -> str:
    """Damage a random file below `folder`; in words, what was done."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    path = _by_kind(files, rng)
    how = rng.choice(WAYS if path.suffix == ".json" else WAYS[:6])
    told = how(path, files, rng)
    return f"{path.relative_to(folder)}: {told}"


def _by_kind(files: list[Path], rng: random.Random) -> Path:
    """Each name of a file is as likely as any other, however many runs have one of this name."""
    kinds: dict[str, list[Path]] = {}
    for path in files:
        kinds.setdefault(path.name.split(".", 1)[-1] if path.parent.name == "analysis" else path.name, []).append(path)
    return rng.choice(kinds[rng.choice(sorted(kinds))])


def _cut(path: Path, files: list[Path], rng: random.Random) -> str:
    content = path.read_bytes()
    size = rng.randrange(len(content))
    replace(path, content[:size])
    return f"cut to {size} of {len(content)} bytes"


def _flip(path: Path, files: list[Path], rng: random.Random) -> str:
    replace(path, flip_bit(path.read_bytes(), rng))
    return "one bit flipped"


def _empty(path: Path, files: list[Path], rng: random.Random) -> str:
    replace(path, b"")
    return "empty"


def _delete(path: Path, files: list[Path], rng: random.Random) -> str:
    path.unlink()
    return "deleted"


def _swap(path: Path, files: list[Path], rng: random.Random) -> str:
    alike = [other for other in files if other.suffix == path.suffix and other != path]
    other = rng.choice(alike or files)
    mine, theirs = path.read_bytes(), other.read_bytes()
    replace(path, theirs)
    replace(other, mine)
    return f"swapped with {other.parent.name}/{other.name}"


def _noise(path: Path, files: list[Path], rng: random.Random) -> str:
    if rng.random() < 0.3:
        path.unlink()
        path.mkdir()
        return "a folder in its place"
    replace(path, rng.randbytes(rng.randrange(1, 2000)))
    return "random bytes"


def _other_json(path: Path, files: list[Path], rng: random.Random) -> str:
    """Still JSON, but a value of another type, a key gone, or another whole."""
    try:
        content = json.loads(path.read_text())
    except ValueError:
        return _noise(path, files, rng)
    if not isinstance(content, dict) or rng.random() < 0.2:
        content, told = rng.choice(ODD_JSON), "all of it"
    else:
        told = _change_inside(content, rng)
    replace(path, json.dumps(content, indent=1).encode())
    return f"other JSON: {told}"


def _change_inside(content: Any, rng: random.Random) -> str:
    place, way = content, []
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = rng.choice(keys)
        way.append(str(key))
        if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.6:
            place = place[key]
            continue
        if rng.random() < 0.25:
            del place[key]
            return f"{'.'.join(way)} gone"
        place[key] = rng.choice(ODD_JSON)
        return f"{'.'.join(way)} = {str(place[key])[:40]!r}"


WAYS = (_cut, _flip, _empty, _delete, _swap, _noise, _other_json, _other_json, _other_json)
