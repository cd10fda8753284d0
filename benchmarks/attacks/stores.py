"""Damaged stores: every command ends in words, and no number is another without being told.

What a command says of a damaged store is compared with what it says of the whole one. Where they differ, it must have
refused, or named the damage; `run` and `tune`, which do again what is lost, must come to the same numbers.
"""

from __future__ import annotations

import csv
import os
import random
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from . import reference
from .command import Said, called, real
from .damage import damage
from .pool import Case, Outcome
from .reference import ANALYZE, HERE, ROUNDS, RUN, RUN_IN_ROUNDS, STUDY, TUNE
from .warm import FRESH, Warm

LIMIT = 900.0  # on a busy machine a command of low priority takes minutes
AGAIN = 0.04  # of the cases the command that made the store is given again, in a process with workers of its own
NAMED = re.compile(r"damaged|cannot be|set aside|missing|failed|to do|not there|left out|begun anew", re.IGNORECASE)

Rows = dict[tuple[str, str], dict[str, str]]


@dataclass
class Victim:
    """A whole store, the command that made it, and those that look at it, with what they say."""

    name: str
    text: str
    command: tuple[str, ...]
    looks: tuple[tuple[str, ...], ...]
    likely: tuple[int, ...]
    made: Path = Path()
    said: dict[tuple[str, ...], Said] = field(default_factory=dict)
    rows: Rows = field(default_factory=dict)


def prepare(folder: Path) -> Case:
    status, report = ("status", "out"), ("report", "out")
    victims = [
        Victim("study", STUDY, RUN, (status, report, ANALYZE), (5, 10, 1)),
        Victim("rounds", ROUNDS, RUN_IN_ROUNDS, (status, report), (1, 2)),
        Victim("tune", TUNE, ("tune", "study.toml", *HERE), (), ()),
    ]
    for victim in victims:
        commands = (victim.command, *({ANALYZE} & {*victim.looks}))
        victim.made = reference.make(folder / victim.name, victim.text, *commands)
        victim.rows = _rows(victim.made / "out")
        for look in victim.looks:
            reference.copy(victim.made, copied := folder / f"{victim.name}_{look[0]}")
            victim.said[look] = _said(look, copied, called)
    warm = Warm()

    def case(rng: random.Random, folder: Path) -> Outcome:
        victim, here = rng.choices(victims, (80, 20, 1))[0], folder / "study"
        reference.copy(victim.made, here)
        told = "; ".join(damage(here / "out", rng) for _ in range(rng.choice((1, 1, 1, 2, 3))))
        again = not victim.looks or rng.random() < AGAIN
        command = victim.command if again else rng.choices(victim.looks, victim.likely)[0]
        told = f"{' '.join(command)} after {told}"
        try:
            said = _said(command, here, _in_process(warm, here, rng) if again else called)
        except subprocess.TimeoutExpired:
            return Outcome("hang", told)
        except Exception as error:
            error.add_note(told)
            raise
        if not said.whole:
            return Outcome("traceback", f"{told}: {said.code}\n{said.text[-2000:]}")
        outcome = _judged(victim, command, said, _rows(here / "out"))
        return outcome if outcome.end == "ok" else Outcome(outcome.end, f"{told}\n{outcome.note}\n{said.text[-1500:]}")

    return case


def _in_process(warm: Warm, here: Path, rng: random.Random) -> Callable[..., Said]:
    """A command in a process of its own, with workers of its own."""
    return partial(real if rng.random() < FRESH else warm.said, folder=here, seconds=LIMIT - 20)


def _said(command: tuple[str, ...], here: Path, say: Callable[..., Said]) -> Said:
    os.chdir(here)  # so that what is printed has no path of its own
    for name in TABLES:
        if (here / "out" / name).is_file():
            (here / "out" / name).unlink()
    return say(*command)


TABLES = ("results.csv", "trials.csv")


def _rows(out: Path) -> Rows:
    """The tables of all runs or trials, without the seconds: the only number that time may change."""
    found: Rows = {}
    for name in TABLES:
        if (out / name).is_file():
            with (out / name).open(newline="") as file:
                for row in csv.DictReader(file):
                    found[row["method"], row.get("seed") or row["trial"]] = {**row, "seconds": ""}
    return found


def _judged(victim: Victim, command: tuple[str, ...], said: Said, found: Rows) -> Outcome:
    name = f"{victim.name}, {command[0]}"
    if said.code == 2:
        return Outcome("ok", f"{name}: refused")
    if other := _other_number(found, victim.rows):
        return Outcome("silent", other)
    if command == victim.command:
        same = found == victim.rows
        return Outcome("ok", f"{name}: the same numbers") if same else Outcome("silent", "runs are gone")
    if said == victim.said[command] and found in ({}, victim.rows):
        return Outcome("ok", f"{name}: the same")
    news = set(said.text.splitlines()) - set(victim.said[command].text.splitlines())
    if not (NAMED.search("\n".join(news)) or any(map(_counts_runs_to_do, news))):
        return Outcome("silent", "it says something else, and not why")
    return Outcome("ok", f"{name}: damage named")


def _counts_runs_to_do(line: str) -> bool:
    """Whether it is the last row of the table of `status`, whose last number is that of the runs to do."""
    first, *_, to_do = line.split() or ["", ""]
    return first == "all" and to_do.isdigit() and int(to_do) > 0


def _other_number(found: Rows, whole: Rows) -> str:
    """A run that is there has its own numbers, or none."""
    for key, row in found.items():
        for name, value in row.items():
            right = whole.get(key, {}).get(name)
            if value not in ("nan", right) and name != "state":
                return f"{key} {name}: {value!r}, not {right!r}"
    return ""
