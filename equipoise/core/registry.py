"""The registry of methods.

A *method* is a plain PyTorch object of one kind. `register` gives it a name, and with it an entry, its `Card`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from . import plugins
from .choices import did_you_mean, known
from .errors import EquipoiseError

# Each kind of method, and the packages whose import registers its members.
KINDS: dict[str, tuple[str, ...]] = {
    "norm": ("equipoise.norms",),
    "head": ("equipoise.models",),
    "loss": ("equipoise.losses",),
    "weighting": ("equipoise.imbalance",),
    "penalty": ("equipoise.losses",),
    "mix": ("equipoise.mixing",),
    "sampler": ("equipoise.imbalance",),
    "posthoc": ("equipoise.imbalance", "equipoise.norms"),
    "augment": ("equipoise.data",),
    "procedure": ("equipoise.train",),
    "stage": ("equipoise.train",),
    "schedule": ("equipoise.train",),
    "model": ("equipoise.models",),
    "task": ("equipoise.data",),
}

# Those that change how a network is trained or corrected; the others are what it is trained on and with.
METHOD_KINDS = tuple(kind for kind in KINDS if kind not in ("model", "task", "schedule"))

# What a task or a network knows. A factory that names one of these as an argument is given it.
FACTS: frozenset[str] = frozenset(
    {
        "class_counts",
        "num_classes",
        "labels",
        "feature_dim",
        "in_features",
        "num_features",
        "in_channels",
        "head_weight",
        "epochs",
        "warmup_epochs",
        "batch_size",
        "make_norm",
        "make_head",
        "root",
    }
)

# Arguments for use in one's own loop, never part of a recipe.
_PLAIN_USE = frozenset(
    {"reduction", "seed", "rank", "num_replicas", "affine", "track_running_stats", "device", "dtype"}
)


@dataclass(frozen=True)
class Card:
    """A method's entry in the registry. Defaults are read off the factory's signature, so they are written once."""

    name: str
    kind: str
    factory: Callable[..., Any]
    year: int | None = None
    arxiv: str | None = None
    neutral: Mapping[str, Any] = field(default_factory=dict)
    companions: Mapping[str, Any] = field(default_factory=dict)
    space: Mapping[str, Any] = field(default_factory=dict)
    examples: Sequence[Mapping[str, Any]] = ({},)
    later: Sequence[str] = ()

    @property
    def origin(self) -> str:
        """Where the factory is defined: `equipoise.losses.focal.FocalLoss`."""
        return f"{self.factory.__module__}.{self.factory.__qualname__}"

    @property
    def is_ours(self) -> bool:
        """Whether it is part of this package, not of a plugin."""
        return self.origin.partition(".")[0] == __name__.partition(".")[0]

    @property
    def summary(self) -> str:
        """The first line of the factory's docstring."""
        return (inspect.getdoc(self.factory) or "").partition("\n")[0]

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """What a `Spec` may set, in the order of the signature."""
        signature = inspect.signature(self.factory, eval_str=True)
        return {
            name: p
            for name, p in signature.parameters.items()
            if name not in FACTS | _PLAIN_USE and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        }

    @cached_property
    def facts(self) -> tuple[str, ...]:
        """The facts the factory asks for by argument name."""
        return tuple(name for name in inspect.signature(self.factory).parameters if name in FACTS)


_REGISTRY: dict[tuple[str, str], Card] = {}  # by kind and name


def register(
    name: str,
    *,
    kind: str,
    year: int | None = None,
    arxiv: str | None = None,
    neutral: Mapping[str, Any] | None = None,
    companions: Mapping[str, Any] | None = None,
    space: Mapping[str, Any] | None = None,
    examples: Sequence[Mapping[str, Any]] = ({},),
    later: Sequence[str] = (),
) -> Callable[[Any], Any]:
    """Enter the decorated class or function in the registry under `name`.

    `neutral` holds parameter values at which the method is the plain baseline (a test checks it).
    `companions` names what goes with it on other dials, e.g. LDAM's cosine head or a data set's usual
    augmentation; a recipe takes it where the user has not chosen.
    `space` says for parameters worth tuning which values to try first, as a study's [tune.space] does:
    ``{"gamma": {"values": (0.5, 1.0, 2.0), "scale": "log"}}``.
    `examples` are parameter values to test it at (`equipoise.testing`), without chance: the first is used where one
    is enough.
    `later` names parameters that came after the first release of the method. At their defaults they are left out of a
    recipe's key, so that the runs of existing stores keep theirs.
    """
    if kind not in KINDS:
        raise ValueError(f"{name!r} is registered as {kind!r}; the kinds are {', '.join(KINDS)}")

    def enter(factory: Any) -> Any:
        entry = Card(
            name,
            kind,
            factory,
            year,
            arxiv,
            neutral=dict(neutral or {}),
            companions=dict(companions or {}),
            space=dict(space or {}),
            examples=tuple(examples),
            later=tuple(later),
        )
        other = _REGISTRY.get((kind, name))
        if other is not None:
            clash = f"two {kind} entries are named {name!r}: {other.origin} and {entry.origin}"
            if other.is_ours or not entry.is_ours:
                raise ValueError(f"{clash}; rename the second")
            plugins.tell(f"{clash}; the first, a plugin's, is left out")  # it came before our own were imported
        _REGISTRY[kind, name] = entry
        return factory

    return enter


@cache
def _with_plugins() -> None:
    """Plugins are imported once, when a method is first asked for."""
    for plugin in plugins.installed():
        before = set(_REGISTRY)
        if not plugins.imported(plugin):
            for key in _REGISTRY.keys() - before:
                if not _REGISTRY[key].is_ours:  # what a plugin imported of ours is there to stay
                    del _REGISTRY[key]


def cards(kind: str | None = None) -> list[Card]:
    """All entries, or those of one kind, by name."""
    if kind is not None and kind not in KINDS:
        raise EquipoiseError(f"no kind of method is named {kind!r}.{did_you_mean(kind, KINDS)}")
    for package in KINDS[kind] if kind else {package for home in KINDS.values() for package in home}:
        importlib.import_module(package)
    _with_plugins()
    return sorted((c for c in _REGISTRY.values() if kind in (None, c.kind)), key=lambda c: c.name)


def card(name: str, kind: str | None = None) -> Card:
    """The entry called `name`; the error for an unknown name suggests the nearest one."""
    by_name = {c.name: c for c in reversed(sorted(cards(kind), key=lambda c: list(KINDS).index(c.kind)))}
    return by_name[known(kind or "method", name, by_name)]


def signature_repr(obj: Any) -> str:
    """`gamma=2.0, scale=30.0`: the constructor's arguments as `obj` holds them, for its repr.

    An object keeps each constructor argument in an attribute of the same name (scikit-learn's rule).
    """
    parts = []
    for name in inspect.signature(type(obj).__init__).parameters:
        if name != "self" and hasattr(obj, name):
            value = getattr(obj, name)
            value = value.tolist() if hasattr(value, "tolist") else value
            parts.append(f"{name}={value!r}")
    return ", ".join(parts)
