"""Damaged stores: status, report, analyze and run end in words, and no number is another without being told.

What a command says of a damaged store is compared with what it says of the whole one. Where they differ, it must have
refused, or named damage, or (run) trained anew and come to the same numbers.
"""

from __future__ import annotations

import csv
import os
import random
import re
import subprocess
from pathlib import Path

from . import reference
from .command import Said, called, real
from .damage import damage
from .pool import Case, Outcome

LIMIT = 240.0
REAL = 0.04  # of the cases are `run`, a process with workers of its own: the store must come right again
LOOKS, LIKELY = ("status", "report", "analyze"), (5, 10, 1)
NAMED = re.compile(r"damaged|cannot be|set aside|missing|failed|to do|not there|again|left out|without", re.IGNORECASE)


def prepare(folder: Path) -> Case:
    made = reference.make(folder / "study")
    whole = {command: _said(command, made, folder / f"whole_{command}")[0] for command in LOOKS}
    rows = _rows(made / "out")

    def case(rng: random.Random, folder: Path) -> Outcome:
        here = folder / "study"
        reference.copy(made, here)
        told = "; ".join(damage(here / "out", rng) for _ in range(rng.choice((1, 1, 1, 2, 3))))
        command = "run" if rng.random() < REAL else rng.choices(LOOKS, LIKELY)[0]
        try:
            said, found = _said_here(command, here)
        except subprocess.TimeoutExpired:
            return Outcome("hang", f"{command} after {told}")
        except Exception as error:
            error.add_note(f"{command} after {told}")
            raise
        if not said.whole:
            return Outcome("traceback", f"{command} after {told}: {said.code}\n{said.text[-2000:]}")
        outcome = _judged(command, said, found, whole, rows)
        return Outcome(outcome.end, f"{command} after {told}\n{outcome.note}") if outcome.end != "ok" else outcome

    return case


def _said(command: str, made: Path, copied: Path) -> tuple[Said, dict[tuple[str, str], dict[str, str]]]:
    reference.copy(made, copied)
    return _said_here(command, copied)


def _said_here(command: str, here: Path) -> tuple[Said, dict[tuple[str, str], dict[str, str]]]:
    os.chdir(here)  # so that what is printed has no path of its own
    if (here / "out" / "results.csv").is_file():
        (here / "out" / "results.csv").unlink()
    if command == "run":
        said = real("run", "study.toml", "--out", "out", "--device", "cpu", folder=here, seconds=LIMIT - 20)
    else:
        said = called(command, "out", *(["--device", "cpu"] if command == "analyze" else []))
    return said, _rows(here / "out")


def _rows(out: Path) -> dict[tuple[str, str], dict[str, str]]:
    """results.csv by method and seed, without the seconds: the only number that time may change."""
    if not (out / "results.csv").is_file():
        return {}
    with (out / "results.csv").open(newline="") as file:
        return {(row["method"], row["seed"]): {**row, "seconds": ""} for row in csv.DictReader(file)}


def _judged(
    command: str, said: Said, found: dict[tuple[str, str], dict[str, str]], whole: dict[str, Said], rows: dict
) -> Outcome:
    if said.code == 2:
        return Outcome("ok", "refused")
    if command == "run":
        return Outcome("ok", "run to the same numbers") if found == rows else _other(found, rows, said)
    if said == whole[command] and found in ({}, rows):
        return Outcome("ok", f"{command}: the same")
    news = set(said.text.splitlines()) - set(whole[command].text.splitlines())
    if not NAMED.search("\n".join(news)):
        return Outcome("silent", f"it says\n{said.text}\n{_other(found, rows, said).note}")
    if (other := _other(found, rows, said)).end != "ok":
        return other
    return Outcome("ok", f"{command}: damage named")


def _other(found: dict, rows: dict, said: Said) -> Outcome:
    """A run that is there has its own numbers, or none."""
    for key, row in found.items():
        for name, value in row.items():
            if value not in ("nan", rows.get(key, {}).get(name)) and name != "state":
                return Outcome("silent", f"{key} {name}: {value!r}, not {rows.get(key, {}).get(name)!r}\n{said.text}")
    return Outcome("ok", "fewer runs, the others the same")
