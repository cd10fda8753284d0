"""What tuning came to: the best trial of each method, how sure it is, and what each dial did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...analysis.statistics.priority import ALL_METRICS
from ...core import EquipoiseError
from ...store import Sensitivity
from ...store.sensitivity import Dial, TriedValue, TunedMethod
from ...train import Recipe
from ..study import Study
from .axis import Axis
from .space import placed
from .trial import Trial


@dataclass(frozen=True)
class MethodOutcome:
    """A method's trials and the one that is chosen: the best on validation data, of equals the first."""

    name: str
    axes: Mapping[str, Axis]
    trials: Sequence[Trial]
    best: Trial | None  # None where no trial finished

    @property
    def error(self) -> str:
        """The last line of the first failed trial's error, if any failed."""
        told = [trial.score.error.strip() for trial in self.trials if trial.score.error]
        return told[0].splitlines()[-1] if told else ""

    @property
    def edges(self) -> list[str]:
        """Dials whose chosen value is the largest or smallest tried, though no limit: a better one may lie beyond."""
        return [dial for dial, axis in self.axes.items() if self.best and is_edge(dial, axis, self.best, self.trials)]


@dataclass(frozen=True)
class Outcome:
    """All methods of a tuned study."""

    study: Study
    methods: Sequence[MethodOutcome]


def best_trial(trials: Sequence[Trial], metric: str) -> Trial | None:
    """The finished trial of the best score; the first of equals, None of none."""
    sign = 1 if ALL_METRICS[metric].higher_is_better else -1
    return max((t for t in trials if t.finished), key=lambda t: sign * (t.score.value or 0.0), default=None)


def is_edge(dial: str, axis: Axis, best: Trial, trials: Sequence[Trial]) -> bool:
    """Whether the best value is at an end of what was tried, and there are values past it."""
    tried = sorted({trial.point[dial] for trial in trials}) if axis.ordered else []
    if len(tried) < 2:
        return False
    sides = ((tried[1], tried[0]), (tried[-2], tried[-1]))
    return any(best.point[dial] == end and axis.beyond(near, end) is not None for near, end in sides)


def sensitivity(outcome: Outcome) -> Sensitivity:
    """Score against value for every dial of every method; pruned and failed trials are left out."""
    metric = ALL_METRICS[outcome.study.metric]
    methods = (
        TunedMethod(
            name=method.name,
            best=method.best.score.value if method.best else None,
            dials=tuple(_dial(dial, axis, method, metric.name) for dial, axis in method.axes.items()),
        )
        for method in outcome.methods
    )
    return Sensitivity(metric.name, metric.higher_is_better, tuple(methods))


def _dial(dial: str, axis: Axis, method: MethodOutcome, metric: str) -> Dial:
    finished = [trial for trial in method.trials if trial.finished]
    points = []
    for value in axis.in_order({trial.point[dial] for trial in finished}):
        those = [trial for trial in finished if trial.point[dial] == value]
        marginal = best_trial(those, metric)
        alike = [t for t in those if method.best and {**t.point, dial: None} == {**method.best.point, dial: None}]
        points.append(
            TriedValue(
                value=value,
                marginal=marginal.score.value if marginal else None,
                slice=alike[0].score.value if alike else None,
                trials=len(those),
            )
        )
    return Dial(
        dial=dial,
        scale=axis.scale,
        chosen=method.best and method.best.point[dial],
        at_edge=dial in method.edges,
        points=tuple(points),
    )


def tuned_name(study: Study) -> str:
    return f"{study.name}_tuned"


def tuned_study(outcome: Outcome) -> Study:
    """The study with the chosen recipes, on all data again; with `refit`, each for its chosen number of epochs."""
    study = outcome.study
    recipes = {}
    for method in outcome.methods:
        if method.best is None:
            raise EquipoiseError(f"no trial of {method.name} finished, so there is nothing to choose: {method.error}")
        recipes[method.name] = _final(method.best, study)
    tuning = study.tuning
    tuned = {"study": study.name, "trials": tuning.trials, "sampler": tuning.sampler, "runs": len(tuning.seeds)}
    return replace(study, name=tuned_name(study), methods=recipes, tuned={**tuned, "refit": tuning.refit})


def _final(best: Trial, study: Study) -> Recipe:
    recipe = replace(best.recipe, task=replace(best.recipe.task, test=True))
    if not study.tuning.refit:
        return recipe
    recipe = replace(recipe, task=replace(recipe.task, valid=0.0, valid_per_class=None))
    epochs = best.score.epoch or recipe.plan.epochs
    # a warm-up that does not fit in them gets the share that one gets by default
    short = recipe.plan.warmup is not None and recipe.plan.warmup >= epochs
    return placed(recipe, {"epochs": epochs, **({"warmup": epochs / 6} if short else {})})
