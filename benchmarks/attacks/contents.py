"""All that a study's folder says, without times: two folders that say the same are equal to the bit."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

TIMES = {"seconds", "ended", "timing", "when", "first_opened", "at", "checksum", "seed_seconds"}  # and what follows
COST = re.compile(r" \([^()]* of computing here\)")  # in a sentence: what more seeds would take
DOCUMENTS = ("study.json", "opened.json", "sequential.json", "analysis.json", "sensitivity.json", "verdict.json")
TABLES = ("results.csv", "table.csv", "trials.csv")


def contents(out: Path) -> dict[str, bytes]:
    """By name: records, arrays and weights of all runs, and what commands have written of them."""
    import numpy as np

    found = {name: _json(out / name) for name in DOCUMENTS if (out / name).exists()}
    found |= {name: _table(out / name) for name in TABLES if (out / name).exists()}
    if (out / "tuned.toml").exists():
        found["tuned.toml"] = (out / "tuned.toml").read_bytes().partition(b"\n")[2]  # the first line has the time
    for path in sorted((out / "runs").glob("*/*")):
        name = str(path.relative_to(out))
        if path.suffix == ".json":
            found[name] = _json(path)
        elif path.suffix == ".npz":
            with np.load(path) as arrays:
                for each in arrays.files:
                    found[f"{name} {each}"] = str(arrays[each].shape).encode() + arrays[each].tobytes()
        else:
            found[name] = path.read_bytes()
    return found


def differences(found: dict[str, bytes], whole: dict[str, bytes]) -> str | None:
    """In words, what is not the same."""
    if lacking := sorted(whole.keys() - found.keys()):
        return f"missing: {', '.join(lacking[:5])}"
    if more := sorted(found.keys() - whole.keys()):
        return f"too much: {', '.join(more[:5])}"
    for name in whole:
        if whole[name] != found[name]:
            place = next((i for i, (a, b) in enumerate(zip(whole[name], found[name], strict=False)) if a != b), 0)
            around = slice(max(0, place - 60), place + 60)
            return f"another {name}: {found[name][around]!r}, not {whole[name][around]!r}"
    return None


def _json(path: Path) -> bytes:
    return json.dumps(_timeless(json.loads(path.read_text())), sort_keys=True).encode()


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(inner) for key, inner in value.items() if key not in TIMES}
    if isinstance(value, list):
        return [_timeless(inner) for inner in value]
    return COST.sub("", value) if isinstance(value, str) else value


def _table(path: Path) -> bytes:
    with path.open(newline="") as file:
        return "\n".join(str({k: v for k, v in row.items() if k not in TIMES}) for row in csv.DictReader(file)).encode()
