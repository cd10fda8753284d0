"""Mutated study files: each is read, or refused in words; a name that is taken is one folder's name.

Half of them come from `mutations.py`, which the reader's own tests use too; half from here, made of the studies that
the project ships and without a look at how they are read.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from .command import ROOT, real
from .odd import odd_literal, odd_spec
from .pool import Case, Outcome

LIMIT = 60.0  # seconds of a case, the real command line included
REAL = 100  # one case in so many also goes through the real command line
PAIR = re.compile(r"^(\s*[\w.\"'-]+\s*=\s*)(.+)$")


def prepare(folder: Path) -> Case:
    from mutations import mutated_study

    from equipoise.core import EquipoiseError
    from equipoise.study import Study

    texts = [path.read_text() for path in sorted((ROOT / "studies").glob("*.toml"))]

    def case(rng: random.Random, folder: Path) -> Outcome:
        path = folder / "study.toml"
        ours = rng.random() < 0.5
        path.write_bytes(mutated(rng.choice(texts), rng) if ours else mutated_study(rng).encode(errors="surrogatepass"))
        try:
            study = Study.from_toml(path)
        except EquipoiseError as error:
            return _refused(path, str(error)) if rng.randrange(REAL) == 0 else Outcome("ok", "refused")
        json.dumps(study.to_dict())
        place = (folder / "runs" / study.name).resolve()
        if place.parent != (folder / "runs").resolve():
            return Outcome("silent", f"the name {study.name!r} writes to {place}")
        return Outcome("ok", "taken")

    return case


def _refused(path: Path, reason: str) -> Outcome:
    """The real command line ends with 2 and says why."""
    try:
        said = real("run", path, "--out", "out", folder=path.parent, seconds=LIMIT / 2)
    except subprocess.TimeoutExpired:
        return Outcome("hang", f"equipoise run did not end; in words it was: {reason}")
    if said.code != 2 or not said.whole:
        return Outcome("traceback", f"equipoise run ended with {said.code}: {said.text[-2000:]}")
    return Outcome("ok", "refused by the real command line")


def mutated(text: str, rng: random.Random) -> bytes:
    """The file after one to four changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        text = rng.choice(CHANGES)(text, rng)
    content = text.encode(errors="surrogatepass")
    return _flipped(content, rng) if rng.random() < 0.1 else content


def _other_value(text: str, rng: random.Random) -> str:
    return _on_a_pair(text, rng, lambda key, value: f"{key}{odd_literal(rng)}")


def _other_spec(text: str, rng: random.Random) -> str:
    return _on_a_pair(text, rng, lambda key, value: f"{key}{json.dumps(odd_spec(rng))}")


def _other_letter(text: str, rng: random.Random) -> str:
    place = rng.randrange(len(text) + 1)
    return text[:place] + rng.choice("[]{}\"'=.#\n\\,\0\x1b0-é") + text[place + rng.randrange(2) :]


def _other_key(text: str, rng: random.Random) -> str:
    odd = rng.choice(['""', "a.b.c", '"x[/b]"', "seeds", "tune.space", "methods", '"\\u0000"', "name", "tuned"])
    return _on_a_pair(text, rng, lambda key, value: f"{odd} = {value}")


def _lines_moved(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    return "\n".join(
        rng.choice(
            (
                lines[:i] + lines[i + 1 :],
                lines[:i] + [lines[j]] + lines[i:],
                lines[: min(i, j)] + lines[max(i, j) :],
                lines[:i] + [f"[{rng.choice(TABLES)}]"] + lines[i:],
            )
        )
    )


def _new_pair(text: str, rng: random.Random) -> str:
    key = rng.choice(("seeds", "name", "question", "metric", "priority", "progress", "tuned", "task", "methods"))
    return f"{key} = {odd_literal(rng)}\n{text}"


def _flipped(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content or b" ")
    for _ in range(rng.randint(1, 8)):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _on_a_pair(text: str, rng: random.Random, change: Callable[[str, str], str]) -> str:
    lines = text.split("\n")
    places = [i for i, line in enumerate(lines) if PAIR.match(line)]
    if places:
        i = rng.choice(places)
        key, value = PAIR.match(lines[i]).groups()  # type: ignore[union-attr]
        lines[i] = change(key, value)
    return "\n".join(lines)


TABLES = ("task", "base", "methods", "methods.plain", "methods.x", "tune", "tune.space", "tuned", "", "a.b", "[base]")
CHANGES = (_other_value, _other_value, _other_value, _other_spec, _other_letter, _other_key, _lines_moved, _new_pair)
