"""The words every part shares: `Batch`, `Output`, the registry of methods, and `Spec`.

A *method* is a plain PyTorch object of one kind. `register` gives it a name; a `Spec` is that name with its
parameters as text, such as ``focal(gamma=2.0)``, and builds the object from the facts of a task.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from . import plugins
from .annotations import annotation_of, fitted
from .words import cut, shown


class EquipoiseError(ValueError):
    """A mistake in what the user asked for; the command line shows its text without a traceback."""


class UnlikeClasses(EquipoiseError):
    """A parameter with a value for each class has another number of them; only the data can tell."""


class Batch(NamedTuple):
    """What one step sees. A mixed sample has two hard labels: `lam` belongs to `target`, the rest to `other`."""

    inputs: Tensor
    target: Tensor
    other: Tensor | None = None
    lam: Tensor | None = None


class Output(NamedTuple):
    """What a network gives: `features` (N, d) feed the head, `feature_map` (N, c, h, w) is before pooling."""

    logits: Tensor
    features: Tensor | None = None
    feature_map: Tensor | None = None


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
    """Plugins are asked for their methods once, when somebody first asks for any."""
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
    found = {c.name: c for c in reversed(sorted(cards(kind), key=lambda c: list(KINDS).index(c.kind)))}
    return found[known(kind or "method", name, found)]


def known(what: str, name: Any, words: Iterable[str]) -> str:
    """`name` if it is one of `words`; the error for anything else, of whatever type, suggests the nearest."""
    words = list(words)
    if not isinstance(name, str) or name not in words:
        raise EquipoiseError(f"no {what} is named {shown(name)}.{did_you_mean(name, words)}")
    return name


def did_you_mean(word: Any, words: Iterable[str]) -> str:
    """' Did you mean 'focal'?' where a near word exists, else the list of all words."""
    words = sorted(words)
    near = difflib.get_close_matches(word[:100], words, n=1) if isinstance(word, str) else []
    if near:
        return f" Did you mean {near[0]!r}?"
    rest = f" and {len(words) - _MOST_WORDS} more" if len(words) > _MOST_WORDS else ""
    return f" There is: {', '.join(words[:_MOST_WORDS])}{rest}."


_MOST_WORDS = 30  # that a message lists


@dataclass(frozen=True)
class Spec:
    """A name with parameters, as text: ``focal(gamma=2.0)``. Literals and keywords only.

    >>> Spec.parse("focal(gamma=2)")
    Spec('focal(gamma=2)')
    >>> Spec.parse("focal(gamma=2)").resolved("loss")
    Spec('focal(gamma=2.0)')
    """

    name: str
    params: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Read ``name`` or ``name(key=literal, …)``."""
        if not isinstance(text, str):
            raise EquipoiseError(f"expected text such as 'focal(gamma=2.0)', not {shown(text)}")
        node = _parsed(text)
        if isinstance(node, ast.Name):
            return cls(node.id)
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            raise _unreadable(text)
        if node.args or any(k.arg is None for k in node.keywords):
            raise _unreadable(text, "parameters need their names; ")
        try:
            params = {str(k.arg): _frozen(ast.literal_eval(k.value)) for k in node.keywords}
        except (ValueError, TypeError, *_TOO_DEEP):
            raise _unreadable(text, "only literals may be given; ") from None
        return cls(node.func.id, tuple(params.items()))

    def __str__(self) -> str:
        inner = ", ".join(f"{k}={v!r}" for k, v in self.params)
        return f"{self.name}({inner})" if inner else self.name

    def __repr__(self) -> str:
        return f"Spec({str(self)!r})"

    def resolved(self, kind: str | None = None) -> Spec:
        """The same with defaults filled in, in the signature's order: equal methods become equal texts."""
        entry = card(self.name, kind)
        given = dict(self.params)
        for name in given.keys() - entry.parameters.keys():
            takes = ", ".join(entry.parameters) or "no parameters"
            raise EquipoiseError(f"{self.name} has no parameter {shown(name)}; it takes {takes}")
        full = {}
        for name, parameter in entry.parameters.items():
            if name not in given and parameter.default is parameter.empty:
                raise EquipoiseError(f"{self.name} needs {name}; write {self.name}({name}=…)")
            full[name] = self._fitted(name, parameter)
        return Spec(self.name, tuple(full.items()))

    def _fitted(self, name: str, parameter: inspect.Parameter) -> Any:
        """The parameter's value as its annotation means it, so that gamma=2 and gamma=2.0 are one recipe."""
        given = dict(self.params)
        try:
            return fitted(f"{name} of {self.name}", given.get(name, parameter.default), annotation_of(parameter))
        except ValueError as error:
            if name in given:
                raise EquipoiseError(str(error)) from None
            return parameter.default  # it may be what nobody can write

    def build(self, kind: str | None = None, **facts: Any) -> Any:
        """Make the object, giving it those of the `facts` that it names."""
        entry = card(self.name, kind)
        missing = [name for name in entry.facts if name not in facts and _is_required(entry, name)]
        if missing:
            raise TypeError(f"{self.name} must be told {', '.join(missing)}")
        known = {name: facts[name] for name in entry.facts if name in facts}
        try:
            return entry.factory(**known, **dict(self.resolved(kind).params))
        except EquipoiseError:
            raise
        except ValueError as error:
            raise EquipoiseError(f"{cut(str(self), 300)}: {error}") from error


def _is_required(entry: Card, name: str) -> bool:
    return inspect.signature(entry.factory).parameters[name].default is inspect.Parameter.empty


def _frozen(value: Any) -> Any:
    return tuple(_frozen(v) for v in value) if isinstance(value, list | tuple) else value


_LONGEST_TEXT = 200_000  # characters: a share for each of ten thousand classes has room
_TOO_DEEP = (RecursionError, MemoryError)  # what Python's parser says to parentheses in parentheses in …


def _parsed(text: str) -> ast.expr:
    if len(text) > _LONGEST_TEXT:
        raise _unreadable(text, f"it has {len(text):,} characters; ")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the parser, about backslashes: a Windows path has some
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, *_TOO_DEEP):
        raise _unreadable(text) from None


def _unreadable(text: str, why: str = "") -> EquipoiseError:
    return EquipoiseError(
        f"cannot read {shown(text)}: {why}write a name with keyword literals, such as focal(gamma=2.0)"
    )


def signature_repr(obj: Any) -> str:
    """`gamma=2.0, scale=30.0`: the constructor's arguments as `obj` holds them, for its repr.

    An object keeps each constructor argument in an attribute of the same name (scikit-learn's rule).
    """
    parts = []
    for name in inspect.signature(type(obj).__init__).parameters:
        if name != "self" and hasattr(obj, name):
            value = getattr(obj, name)
            value = value.tolist() if isinstance(value, Tensor) else value
            parts.append(f"{name}={value!r}")
    return ", ".join(parts)


def full_precision(x: Tensor) -> Tensor:
    """`x` in float32 at least: losses and statistics of half-precision values are computed there."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
