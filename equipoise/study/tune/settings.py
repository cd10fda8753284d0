"""`Tuning`: a study's [tune] table, read with all its mistakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ...core import checks, did_you_mean, known
from ...core.words import shown
from ...train import Mistakes, Recipe
from .space import flat, has, space_of

SAMPLERS = ("grid", "tpe", "random")
MOST_TRIALS = 10_000


@dataclass(frozen=True)
class Tuning:
    """How a study is tuned. Each method has `trials` trials, and a trial is one run for each of `seeds`.

    `prune` lets a trial of "tpe" or "random" end after some of its runs where they are below the median of others;
    it counts as a trial. `race`, which takes the place of `prune`, ends trials of any search that have no hope against
    the best, after some of their runs or half of one. `refit` gives the validation images back to train for the study
    that is written.
    """

    trials: int = 20
    sampler: str = "grid"
    seeds: tuple[int, ...] = (0, 1, 2)
    prune: bool = True
    race: bool = False
    refit: bool = False
    space: Mapping[str, Any] = field(default_factory=dict)  # for all methods, by dial, as written
    spaces: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # for one method, by its name

    def __post_init__(self) -> None:
        checks.whole("trials", self.trials, 1, MOST_TRIALS)
        known("sampler", self.sampler, SAMPLERS)
        checks.truth("prune", self.prune)
        checks.truth("race", self.race)
        checks.truth("refit", self.refit)


def read_tuning(
    table: Mapping[str, Any],
    spaces: Mapping[str, Any],
    recipes: Mapping[str, Recipe],
    read_seeds: Callable[[Any, list[str]], tuple[int, ...]],
    mistakes: list[str],
) -> Tuning:
    """From the [tune] table and the [methods.NAME.space] tables; adds to `mistakes`."""
    keys = [f.name for f in fields(Tuning) if f.name != "spaces"]
    wrong = [f"[tune]: no key is named {shown(key)}.{did_you_mean(key, keys)}" for key in table if key not in keys]
    options = {key: value for key, value in table.items() if key in keys}
    if "seeds" in options:
        told: list[str] = []
        options["seeds"] = read_seeds(options["seeds"], told)
        wrong += [f"[tune]: {line}" for line in told]
    options["space"] = _flat("[tune.space]", options.get("space", {}), wrong)
    options["spaces"] = {name: _flat(f"[methods.{name}.space]", table, wrong) for name, table in spaces.items()}
    wrong += _mistakes_of_spaces(options["space"], options["spaces"], recipes)
    try:
        tuning = Tuning(**options)
    except ValueError as error:
        wrong.append(f"[tune]: {error}")
    mistakes += wrong
    return Tuning() if wrong else tuning


def _flat(place: str, table: Any, wrong: list[str]) -> dict[str, Any]:
    if isinstance(table, Mapping):
        return flat(table)
    wrong.append(f"{place} must be a table of dials and their values")
    return {}


def _mistakes_of_spaces(
    common: Mapping[str, Any], own: Mapping[str, Mapping[str, Any]], recipes: Mapping[str, Recipe]
) -> list[str]:
    wrong = [
        f"[tune.space]: no method has a dial {shown(dial)} to search"
        for dial in common
        if recipes and not any(has(recipe, dial) for recipe in recipes.values())
    ]
    if not common and not any(own.values()):
        return wrong
    for name, recipe in recipes.items():
        try:
            space_of(recipe, common, own.get(name))
        except Mistakes as error:
            wrong += [f"[methods.{name}.space]: {line}" for line in error.lines]
    return wrong
