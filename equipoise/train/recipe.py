"""`Recipe`: one choice per dial, a model, a plan, a task and a seed. Frozen, plain data, hashed."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property, lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ..core import EquipoiseError, Spec, UnlikeClasses, card, cards, checks, did_you_mean
from ..core.annotations import fitted
from ..core.words import counted, shown
from ..data import Task, check_task, placeless
from ..models import FreshHead, create_model, zoo_text
from ..models.weights import content_of
from .head_only import unfit_for_head
from .plan import Plan

# dial -> its value when neither the user nor a companion has chosen
DIALS: dict[str, str | None] = {
    "model": "resnet32",
    "norm": "batch",
    "head": "linear",
    "loss": "cross_entropy",
    "weighting": None,
    "penalty": None,
    "mix": None,
    "sampler": "uniform",
    "augment": "none",
    "procedure": None,
    "stage": None,
    "posthoc": None,
}

# at these values, options that a later version added to the task and the plan change no key
_LATER_TASK_OPTIONS = (("valid_per_class", None), ("test", True), ("content", None))
_LATER_PLAN_OPTIONS = (
    ("accumulate", 1),
    ("weights", None),
    ("optimizer", "sgd"),
    ("layer_decay", 1.0),
    ("train", "all"),
)

MOST_PARAMETERS = 10**10  # 40 GB of weights; training takes three times as much


@dataclass(frozen=True)
class TaskChoice:
    """Which data, and what is done to it before any method sees it. The fields are `load_task`'s arguments."""

    name: str = "digits"
    imbalance: str | None = None
    ratio: float = 1.0
    valid: float = 0.1
    n_max: int | None = None
    valid_per_class: int | None = None
    test: bool = True
    content: str | None = None  # what the data is, once a study is bound to it

    def __post_init__(self) -> None:
        check_task(**self.__dict__)
        object.__setattr__(self, "name", str(Spec.parse(self.name).resolved("task")))
        for name in ("ratio", "valid"):
            object.__setattr__(self, name, float(getattr(self, name)))
        for name in ("n_max", "valid_per_class"):
            object.__setattr__(self, name, fitted(name, getattr(self, name), int | None))


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a result. Dials are texts with all defaults filled in; make one with `Recipe.make`."""

    task: TaskChoice
    model: str
    norm: str
    head: str
    loss: str
    weighting: str | None
    penalty: str | None
    mix: str | None
    sampler: str
    augment: str
    procedure: str | None
    stage: str | None
    posthoc: str | None
    plan: Plan = field(default_factory=Plan)
    seed: int = 0

    @classmethod
    def make(
        cls, options: Mapping[str, Any] | None = None, task: Mapping[str, Any] | None = None, seed: int = 0
    ) -> Recipe:
        """From flat options, e.g. ``Recipe.make({"loss": "focal", "epochs": 30}, {"name": "digits"})``.

        Raises `Mistakes` with every mistake, not only the first.
        """
        mistakes: list[str] = []
        choice = _try(mistakes, lambda: TaskChoice(**_known(mistakes, dict(task or {}), TaskChoice, "task.")))
        options = dict(options or {})
        for name in options.keys() - DIALS.keys() - {f.name for f in fields(Plan)}:
            words = [*DIALS, *(f.name for f in fields(Plan))]
            mistakes.append(f"no option is named {shown(name)}.{did_you_mean(name, words)}")
            del options[name]
        chosen = _with_companions(options, choice)
        dials = {name: _try(mistakes, lambda n=name: _resolved(n, chosen[n]), f"{name}: ") for name in DIALS}
        plan_options = {k: v for k, v in chosen.items() if k not in DIALS}
        plan = _try(mistakes, lambda: Plan(**plan_options))
        if not mistakes:
            _try(mistakes, lambda: _check_network(dials))
            if plan.accumulate > 1:
                _try(mistakes, lambda: _check_parts(dials, f"accumulate = {plan.accumulate}"))
            if plan.train == "head":
                defaults = {dial: _resolved(dial, choice) for dial, choice in DIALS.items()}
                mistakes += unfit_for_head(dials, defaults, plan.weights, _facts(torch.tensor([3, 2])))
        _try(mistakes, lambda: checks.whole("seed", seed))
        if mistakes:
            raise Mistakes(mistakes)
        return cls(task=choice, **dials, plan=plan, seed=seed)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Recipe:
        """The inverse of `to_dict`."""
        return cls(**{**plain, "task": TaskChoice(**plain["task"]), "plan": Plan(**plain["plan"])})

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def key(self) -> str:
        """A hash of all that decides the result: equal recipes have equal keys, however they were written."""
        return self._key if self.plan.weights is None else self._made_key()  # a file may change meanwhile

    @cached_property
    def _key(self) -> str:
        return self._made_key()

    def _made_key(self) -> str:
        plain = without_what_came_later(self.to_dict())
        if self.task.content is not None:  # where the data lies no longer matters
            plain["task"]["name"] = placeless(self.task.name)
        if self.plan.weights is not None:  # nor where the weights do
            plain["plan"]["weights"] = content_of(self.plan.weights)
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def parent(self) -> Recipe | None:
        """The recipe whose trained network this one continues or corrects; it is trained once for all that share it."""
        if self.posthoc:
            return replace(self, posthoc=None)
        return replace(self, stage=None) if self.stage else None

    @property
    def capturable(self) -> bool:
        """Whether the host decides no more of a step than its procedure's phase, so that a GPU's graph can have it."""
        return self.procedure is None or _procedure(self.procedure).in_graphs

    @property
    def plain_steps(self) -> bool:
        """Whether every network that it trains takes plain steps, so that a GPU's pack can have them all as one."""
        return self.procedure is None or self.networks > 1

    @property
    def networks(self) -> int:
        """How many networks of its size its step trains."""
        return 1 if self.procedure is None else _procedure(self.procedure).networks

    def check(self, task: Task) -> None:
        """Refuse what this data cannot do: parameters that do not fit its classes, more steps than can be planned."""
        self.plan.check_length(len(task.train))
        for dial in _OF_CLASSES:
            if text := getattr(self, dial):
                Spec.parse(text).build(dial, **_facts(task.class_counts, self.plan))
        self.head_note(task)

    def check_processes(self, count: int, images: int) -> None:
        """Refuse what `count` processes cannot train together, where so many images pass the network at a time."""
        if count == 1:
            return
        _check_parts({dial: getattr(self, dial) for dial in DIALS}, f"training by {count} processes")
        if images < count:
            raise EquipoiseError(
                f"{counted(images, 'image')} at a time cannot be shared by {count} processes: raise batch_size, lower "
                "accumulate, or start fewer processes"
            )

    def head_note(self, task: Task) -> str | None:
        """What is to be said of a head that the file of weights does not have; weights that do not fit are refused."""
        if self.plan.weights is None:
            return None
        facts = task.facts()
        return _head_note(
            self.model, self.norm, self.head, self.plan.weights, facts["num_classes"], facts["in_channels"]
        )


@lru_cache(maxsize=64)  # the methods of a study mostly share their network
def _head_note(model: str, norm: str, head: str, weights: str, num_classes: int, in_channels: int) -> str | None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        create_model(model, num_classes, norm=norm, head=head, in_channels=in_channels, weights=weights)
    return next((str(warning.message) for warning in caught if warning.category is FreshHead), None)


class Mistakes(EquipoiseError):
    """Several mistakes at once; `lines` has one each."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def without_what_came_later(plain: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe as `Recipe.to_dict` gives it, or a part of it, as the first version would have written it.

    What is not chosen is left out, and so is every option that came later and has its default: an option more changes
    no key, and records of before and after it are of one recipe.
    """
    kept = {k: v for k, v in plain.items() if v is not None}
    kept |= {dial: _without_later_parameters(dial, kept[dial]) for dial in DIALS if dial in kept}
    for name, later in (("task", _LATER_TASK_OPTIONS), ("plan", _LATER_PLAN_OPTIONS)):
        if name in kept:
            kept[name] = {k: v for k, v in kept[name].items() if (k, v) not in later}
    return kept


@lru_cache(maxsize=1024)
def _without_later_parameters(kind: str, text: str) -> str:
    """The text of a dial as a version wrote it that did not have the `later` parameters of the method."""
    with suppress(EquipoiseError):  # a network of another library, or a plugin's method that is not installed here
        spec = Spec.parse(text)
        entry = card(spec.name, kind)
        unset = {name: entry.parameters[name].default for name in entry.later}
        if unset:
            return str(Spec(spec.name, tuple((k, v) for k, v in spec.params if k not in unset or v != unset[k])))
    return text


def _try(mistakes: list[str], make: Any, prefix: str = "") -> Any:
    try:
        return make()
    except Mistakes as error:
        mistakes += error.lines
    except ValueError as error:
        mistakes.append(f"{prefix}{error}")


def _known(mistakes: list[str], options: dict[str, Any], cls: type, prefix: str) -> dict[str, Any]:
    names = [f.name for f in fields(cls)]
    for name in options.keys() - set(names):
        mistakes.append(f"no option is named {shown(prefix + name)}.{did_you_mean(name, names)}")
    return {name: value for name, value in options.items() if name in names}


def _with_companions(options: dict[str, Any], task: TaskChoice | None) -> dict[str, Any]:
    """Options, over what the data set and the chosen methods bring along, over defaults."""
    brought: dict[str, Any] = dict(card(Spec.parse(task.name).name, "task").companions) if task else {}
    for dial in DIALS:
        chosen = options.get(dial, DIALS[dial])
        name = chosen.partition("(")[0].strip() if isinstance(chosen, str) else None
        for entry in cards(dial):
            if entry.name == name:
                brought |= entry.companions
    if options.get("train") == "head":
        brought.pop("augment", None)  # images are looked at once
    return DIALS | brought | options


# dials whose methods know the classes, and are quickly made; a head and a norm are made with the network
_OF_CLASSES = ("loss", "weighting", "mix", "posthoc")


def _facts(class_counts: Tensor, plan: Plan | None = None) -> dict[str, Any]:
    """Enough facts to try a method's parameters out without any data."""
    classes = len(class_counts)
    known = {"class_counts": class_counts, "num_classes": classes, "head_weight": torch.ones(classes, 4)}
    lengths = {"epochs": plan.epochs, "batch_size": plan.batch_size} if plan else {}
    return {**known, **lengths, "labels": torch.arange(classes), "in_features": 4}


@lru_cache(maxsize=64)
def _procedure(text: str) -> Any:
    """One to ask about itself."""
    return Spec.parse(text).build("procedure", **_facts(torch.tensor([3, 2])))


def _resolved(kind: str, text: Any) -> str | None:
    """The dial's text with defaults filled in, its parameters tried out."""
    if text is None or (text == "none" and DIALS[kind] is None):
        return None
    if kind == "model" and isinstance(text, str) and "/" in text:  # a network of another library, e.g. timm/resnet18
        return zoo_text(checks.title("model", text))
    spec = Spec.parse(text).resolved(kind)
    if kind not in ("model", "norm", "head"):
        with suppress(UnlikeClasses):  # how many classes there are is not known yet
            spec.build(kind, **_facts(torch.tensor([3, 2])))
    return str(spec)


def _check_network(dials: Mapping[str, Any]) -> None:
    """Its norm and head fit, it is not too large, and the mixing's site exists in it."""
    parameters, sites = _sketch(dials["model"], dials["norm"], dials["head"])
    if parameters > MOST_PARAMETERS:
        raise EquipoiseError(
            f"model: {dials['model']} has {parameters:,} parameters, and to train them takes "
            f"{12e-9 * parameters:,.0f} GB of memory; choose a network of at most {MOST_PARAMETERS:,}"
        )
    if dials["mix"]:
        site = Spec.parse(dials["mix"]).build("mix", **_facts(torch.tensor([3, 2]))).site
        if site not in sites:
            raise EquipoiseError(f"mix: {dials['model']} has no site {site!r}.{did_you_mean(site, sites)}")


def _check_parts(dials: Mapping[str, Any], dividing: str) -> None:
    """What is done with a whole batch cannot be done with its parts; `dividing` is what makes them."""
    if dials["procedure"]:
        raise EquipoiseError(f"{dividing} needs the plain step, which {dials['procedure']} replaces")
    weighting = dials["weighting"] and Spec.parse(dials["weighting"]).build("weighting", **_facts(torch.tensor([3, 2])))
    if dials["penalty"] and weighting and weighting.normalize == "batch":
        raise EquipoiseError(
            f"{dividing} cannot add a penalty to a loss that is divided by the batch's sum of weights: leave out the "
            "penalty, or the weighting's normalize='batch'"
        )


@lru_cache(maxsize=64)  # the methods of a study, and the trials of a search, mostly share their network
def _sketch(model: str, norm: str, head: str) -> tuple[int, tuple[str, ...]]:
    """Parameters of a network, which is built without memory, and the sites of a mixing in it."""
    with torch.device("meta"), _Unfilled():
        network = create_model(model, 2, norm=norm, head=head)
    return sum(p.numel() for p in network.parameters()), network.sites


class _Unfilled(TorchFunctionMode):
    """Within it weights get no values, which they could not hold: PyTorch would import its compiler to say so."""

    FILLING = frozenset(("normal_", "uniform_", "zero_", "fill_", "copy_", "mul_", "add_", "clamp_", "erfinv_"))

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        if func.__name__ in self.FILLING:
            return next(iter((*args, *given.values())))  # the tensor, which `torch.nn.init` passes by name
        return func(*args, **given)
