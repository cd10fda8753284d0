"""What a verdict takes for granted: all runs learned, training had converged, images are independent, the data stayed
the same.

No test of differences notices where one of these fails, so each is said, with how it was checked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..analysis.statistics.convergence import Gain, gain_of, learned_share
from ..analysis.statistics.priority import ALL_METRICS
from ..core import Spec
from ..core.words import counted
from ..store import Audited, Convergence, Damaged, LongerRun, Store, StudyDocument
from ..store.recipes import identity
from ..store.store import REMEDIES
from .collected import Premise, Run
from .render.words import is_share, value
from .seal import still_to_do

UNCHECKED = "'equipoise run' checks it once all runs are done"
WITHHELD = "Claims are withheld: train for more epochs, in another folder (--out)."
ACCEPTED = "The study accepts that (accept_short_training), so claims are made all the same."

Judged = tuple[LongerRun, Gain]


def longer_runs(store: Store) -> Convergence:
    """The longer trainings of a study, if there are any.

    A study that has ended has a list of them. Without it, a study that was trained too briefly would make the claims
    that were withheld.
    """
    if store.holds(Convergence):
        return store.document(Convergence)
    if still_to_do(store) is not None:
        return Convergence(reason=UNCHECKED)
    if _has_longer_trainings(store):
        problem = "it is gone, though longer trainings were made to check whether training was long enough"
        raise Damaged(store.path / Convergence.FILE, problem, REMEDIES[Convergence.FILE])
    return Convergence(reason=f"{Convergence.FILE} is not there; {REMEDIES[Convergence.FILE]}")


def _has_longer_trainings(store: Store) -> bool:
    """Whether the store has a run that is not the study's and differs from one of its methods only in more epochs."""
    study = store.study()
    planned = dict(_without_epochs(method.recipe) for method in study.methods)
    others = (_without_epochs(record.recipe) for record in store.records() if record.key not in study.keys)
    return any(epochs > planned.get(rest, math.inf) for rest, epochs in others)


def _without_epochs(recipe: Mapping[str, Any]) -> tuple[str, int]:
    """A recipe without seed and epochs, as a text to compare, and its epochs."""
    plan = recipe.get("plan") or {}
    return identity({**recipe, "seed": None, "plan": {**plan, "epochs": None}}), plan.get("epochs", 0)


def gains_of(
    longer: Sequence[tuple[LongerRun, Run]], runs: Mapping[str, Sequence[Run]], store: Store, metric: str
) -> list[Judged]:
    """What each longer training that has finished gained over the runs of the study."""
    scores = {name: [run.metrics[metric] for run in of_method] for name, of_method in runs.items()}
    judged = []
    for found, run in longer:
        planned = {own.seed: own for own in runs.get(found.method, ())}
        if run.finished and found.seed in planned:
            gain = gain_of(
                scores,
                found.method,
                list(planned).index(found.seed),
                run.metrics[metric],
                higher_is_better=ALL_METRICS[metric].higher_is_better,
                learned=learned_share(_losses(store, planned[found.seed]), _losses(store, run)),
                tests=len(longer),
            )
            judged.append((found, gain))
    return judged


def broken_premise(judged: Sequence[Judged], metric: str, accepted: bool) -> str:
    """What the verdict must say first; empty where training was long enough, as far as is known."""
    short = [(run, gain) for run, gain in judged if gain.too_short]
    if not short:
        return ""
    return f"Training has not converged: {_gains(short, metric)}. {ACCEPTED if accepted else WITHHELD}"


def premises_of(
    study: StudyDocument,
    longer: Convergence,
    judged: Sequence[Judged],
    runs: Sequence[Run],
    audited: Audited | None,
) -> tuple[Premise, ...]:
    """All of them, in the order in which one would ask: about the runs, then about the data."""
    recipes = [method.recipe for method in study.methods]
    return (
        _learned(runs),
        _converged(longer, judged, study.metric),
        _independent(recipes, audited),
        _unchanged(runs),
    )


def _learned(runs: Sequence[Run]) -> Premise:
    """Whether no run has one answer for all images, as after too high a rate: its loss is finite and its score chance.

    It counts all the same: that a method does this now and then is a property of the method.
    """
    told = [run for run in runs if run.confusion]
    if not told:
        why = "there are no test images" if any(run.finished for run in runs) else "no run has finished"
        return Premise("learned", None, f"not known: {why}")
    stuck: dict[str, list[str]] = {}
    for run in told:
        if names_one_class(run.confusion):
            stuck.setdefault(run.method, []).append(str(run.seed))
    if not stuck:
        return Premise("learned", True, "yes: every run tells classes apart")
    who = "; ".join(f"{method}, seed{'s' * (len(seeds) > 1)} {', '.join(seeds)}" for method, seeds in stuck.items())
    number = sum(map(len, stuck.values()))
    count, them = counted(number, "run names", "runs name"), "it" if number == 1 else "them"
    return Premise("learned", False, f"no: {count} one class for all images ({who}); means include {them}")


def names_one_class(confusion: Mapping[tuple[int, int], int]) -> bool:
    """Whether images of several classes are all taken for the same one."""
    return len({named for _, named in confusion}) == 1 and len({true for true, _ in confusion}) > 1


def _converged(longer: Convergence, judged: Sequence[Judged], metric: str) -> Premise:
    if not longer.runs:
        return Premise("converged", None, f"not checked: {longer.reason}")
    holds = not any(gain.too_short for _, gain in judged)
    is_whole = len(judged) == len(longer.runs)
    lost = "a longer training is missing or did not finish"
    if not judged or any(math.isnan(gain.gain) for _, gain in judged) or (holds and not is_whole):
        return Premise("converged", None, f"not known: {lost}")
    bounds = [gain.by_chance for _, gain in judged if math.isfinite(gain.by_chance)]
    chance = f" (by chance up to {value(max(bounds), metric)})" if bounds else ""
    rest = "" if is_whole else f"; {lost}"
    return Premise("converged", holds, f"{'yes' if holds else 'no'}: {_gains(judged, metric)}{chance}{rest}")


def _gains(judged: Sequence[Judged], metric: str) -> str:
    """With 60 instead of 30 epochs plain gains 1.2 points and focal gains −0.3 points."""
    lengths = dict.fromkeys(f"{run.longer} instead of {run.epochs}" for run, _ in judged)
    parts = [f"{run.method} gains {_amount(gain.gain, metric)}" for run, gain in judged]
    return f"with {' and '.join(lengths)} epochs {' and '.join(parts)}"


def audit_of(store: Store) -> Audited | None:
    """What an audit found of the study's images, if there was one."""
    return store.document(Audited) if store.holds(Audited) else None


def _independent(recipes: Sequence[Mapping[str, Any]], audited: Audited | None) -> Premise:
    """Whether images that belong together are kept together: the user says which do, an audit finds some."""
    tasks = [Spec.parse(task["name"]) for recipe in recipes if (task := recipe.get("task"))]
    told = [any(value for name, value in task.params if name in ("group", "groups")) for task in tasks]
    if audited is not None and audited.torn:
        torn = counted(audited.torn, "image or group", "images or groups")
        return Premise("independent", False, f"no: {torn} in two parts, as {audited.place}/audit.html shows")
    if told and all(told):
        listed = any(value for task in tasks for name, value in task.params if name == "groups")
        if listed and audited is not None and audited.outdated:
            return _not_known(audited)
        return Premise("independent", True, "yes: images of one group are on one side of every split")
    if audited is not None:
        return _by_audit(audited)
    own_images = any(name == "path" for task in tasks for name, _ in task.params)
    remedy = "run 'equipoise audit', and give group or groups in [task]"
    return Premise("independent", None, f"not checked: {remedy if own_images else 'the split is taken as it is'}")


def _by_audit(audited: Audited) -> Premise:
    """Of a study that says of no images that they belong together."""
    found, remedies = [], []
    if audited.copies:
        found.append(f"{counted(audited.copies, 'image has', 'images have')} copies")
        remedies.append(f"groups = '{audited.place}/groups.csv'")
    if audited.group is not None:
        found.append("file names tell of groups")
        remedies.append(f"group = '{audited.group}'")
    if not found and audited.outdated:
        return _not_known(audited)
    if not found:
        return Premise("independent", True, "yes: the audit found neither copies nor groups")
    words = f"no: {' and '.join(found)}; write {' and '.join(remedies)} in [task], in another folder (--out)"
    return Premise("independent", False, words)


def _not_known(audited: Audited) -> Premise:
    """Where the images are others than those that the audit saw."""
    return Premise("independent", None, f"not known: {audited.outdated}; run 'equipoise audit' again")


def _unchanged(runs: Sequence[Run]) -> Premise:
    """Runs that saw other images stop a report before it comes here."""
    finished = sum(run.finished for run in runs)
    if not finished:
        return Premise("same data", None, "not known: no run has finished")
    return Premise("same data", True, f"yes: all {counted(finished, 'run')} saw the same images, seed by seed")


def _losses(store: Store, run: Run) -> list[float]:
    """The training loss of every epoch of a run, or of the training that it corrects."""
    record = run.record
    if record and record.trained_by is not None and store.has(record.trained_by):
        record = store.get(record.trained_by)
    losses = record.curves.get("train_loss", []) if record else []
    return [math.nan if loss is None else loss for loss in losses]


def _amount(x: float, metric: str) -> str:
    return value(x, metric) + (" points" if is_share(metric) else "")
