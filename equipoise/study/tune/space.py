"""`Space`: a method's dials worth turning. Every method has lr and weight_decay; its parts bring their own.

A dial is named as a recipe writes it: ``lr`` for an option of the plan, ``loss.gamma`` for a parameter of the method
that is chosen there. ``lr*weight_decay`` is the product of the two, searched instead of weight_decay.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from ...core import Card, EquipoiseError, Spec, card, did_you_mean, known
from ...core.words import shown
from ...train import DIALS, Mistakes, Plan, Recipe
from ...train.plan import USUAL_DECAY
from .axis import Axis, around, read_axis

Point = dict[str, Any]  # dial -> value

# λ = η · decay of the loss functions paper (table A.2): how fast weights shrink, whatever the learning rate
PRODUCT = "lr*weight_decay"

# the stop is found on the validation curves, so that no method is given longer trials than another
_PLAN = tuple(f.name for f in fields(Plan) if f.name != "epochs")


@dataclass(frozen=True)
class Space:
    """A recipe and the axes along which it may be changed."""

    recipe: Recipe
    axes: Mapping[str, Axis]

    @property
    def start(self) -> Point:
        """The recipe as it is, or the nearest point of the coarse grid."""
        return {dial: axis.nearest(value_of(self.recipe, dial)) for dial, axis in self.axes.items()}

    @property
    def size(self) -> float:
        """How many different points a search can find."""
        return math.prod(axis.size for axis in self.axes.values())

    def at(self, point: Mapping[str, Any]) -> Recipe:
        """The recipe with the values of `point`."""
        return placed(self.recipe, point)


def space_of(recipe: Recipe, common: Mapping[str, Any] | None = None, own: Mapping[str, Any] | None = None) -> Space:
    """The space of a method: lr, weight_decay and what its parts' entries say, unless a study writes it differently.

    `common` is the study's [tune.space], of which a method takes what it has; `own` its [methods.NAME.space]. A dial
    with a single value is not searched, but set to it. Where the product lr*weight_decay is written, weight_decay
    follows from it and lr. Raises `Mistakes` with all of them.
    """
    try:
        axes, mistakes = dict(_natural(recipe)), []
    except ValueError as error:  # a value next to the largest or smallest number has no neighbours
        raise Mistakes([str(error)]) from None
    written = {dial: given for dial, given in (common or {}).items() if has(recipe, dial)} | dict(own or {})
    if PRODUCT in written:
        if "weight_decay" in written:
            mistakes.append(f"{PRODUCT} decides weight_decay, so only one of the two can be searched: leave one out")
        axes[PRODUCT] = around(recipe.plan.lr * axes.pop("weight_decay").values[1])
    for dial, given in written.items():
        try:
            value = value_of(recipe, dial)
            axes[dial] = read_axis(given, axes.get(dial), floats=value is None or isinstance(value, float))
        except ValueError as error:
            mistakes.append(f"{dial}: {error}")
    if mistakes:
        raise Mistakes(mistakes)
    # a single product still gives each lr its own decay
    fixed = {dial: axis.values[0] for dial, axis in axes.items() if len(axis.values) == 1 and dial != PRODUCT}
    return Space(placed(recipe, fixed) if fixed else recipe, {d: a for d, a in axes.items() if d not in fixed})


def _natural(recipe: Recipe) -> Iterator[tuple[str, Axis]]:
    yield "lr", around(recipe.plan.lr)
    yield "weight_decay", around(recipe.plan.weight_decay or USUAL_DECAY[recipe.plan.train])  # 0 cannot be multiplied
    companions = set(_companions(recipe))
    for dial, entry, params in _methods(recipe):
        if (dial, getattr(recipe, dial)) in companions:  # it belongs to the method that brought it
            continue
        for name, given in entry.space.items():
            value = params[name]
            if value is not None:  # None: the method finds it by itself
                yield f"{dial}.{name}", read_axis(given, floats=isinstance(value, float)).including(value)


def _companions(recipe: Recipe) -> Iterator[tuple[str, str]]:
    for entry in (card(Spec.parse(recipe.task.name).name, "task"), *(entry for _, entry, _ in _methods(recipe))):
        for dial, text in entry.companions.items():
            if dial in DIALS:
                yield dial, str(Spec.parse(text).resolved(dial))


def _methods(recipe: Recipe) -> Iterator[tuple[str, Card, dict[str, Any]]]:
    for dial in DIALS:
        text = getattr(recipe, dial)
        if text is not None and "/" not in text:  # a network of another library has no entry
            spec = Spec.parse(text)
            yield dial, card(spec.name, dial), dict(spec.params)


def value_of(recipe: Recipe, dial: str) -> Any:
    """What the recipe has there; the error for a dial that it lacks names the nearest."""
    if dial == PRODUCT:
        return recipe.plan.lr * float(recipe.plan.weight_decay or 0)
    kind, dot, name = dial.partition(".")
    if not dot:
        if kind == "epochs":
            raise EquipoiseError("epochs is not searched: the epoch to stop at is found on the validation curves")
        if kind in DIALS:
            raise EquipoiseError(f"say which parameter: {kind}.NAME")
        return getattr(recipe.plan, known("dial", kind, (*_PLAN, PRODUCT)))
    text = getattr(recipe, known("dial", kind, DIALS))
    if text is None:
        raise EquipoiseError(f"this method has no {kind}")
    params = dict(Spec.parse(text).params)
    if name not in params:
        raise EquipoiseError(f"{text} has no parameter {shown(name)}.{did_you_mean(name, params) if params else ''}")
    return params[name]


def has(recipe: Recipe, dial: str) -> bool:
    """Whether the recipe has this dial."""
    try:
        value_of(recipe, dial)
    except EquipoiseError:
        return False
    return True


def options_of(recipe: Recipe) -> dict[str, Any]:
    """The flat options that `Recipe.make` makes the same recipe of."""
    return {**{dial: getattr(recipe, dial) for dial in DIALS}, **asdict(recipe.plan)}


def placed(recipe: Recipe, point: Mapping[str, Any]) -> Recipe:
    """`recipe` with other values at some dials; raises `Mistakes` where a method refuses one."""
    options = options_of(recipe)
    for dial, value in point.items():
        kind, dot, name = dial.partition(".")
        if dial == PRODUCT:
            continue
        if dot:
            spec = Spec.parse(options[kind])
            options[kind] = str(Spec(spec.name, tuple({**dict(spec.params), name: value}.items())))
        else:
            options[kind] = value
    if PRODUCT in point:
        decay = point[PRODUCT] / options["lr"]
        if not math.isclose(decay, options["weight_decay"], rel_tol=1e-12):  # else the recipe's own, to the last digit
            options["weight_decay"] = decay
    return replace(Recipe.make(options, seed=recipe.seed), task=recipe.task)


def flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """A written space by dial: ``loss.gamma = […]`` is a table in a table to TOML."""
    dials: dict[str, Any] = {}
    for key, given in table.items():
        nested = key in DIALS and isinstance(given, Mapping)
        dials |= {f"{key}.{name}": axis for name, axis in given.items()} if nested else {key: given}
    return dials
