"""Measures the runs of a study one after the other, then puts together what they say of its methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial

import torch

from ... import __version__
from ...analysis.statistics.priority import Priority
from ...core import EquipoiseError, Spec
from ...data import forget_cached
from ...store import Analysis, Damaged, Store, explained
from ...store.analysis import Problem, Representations
from ...train import Run
from ..run.listener import Listener
from ..run.runs import Interrupted, on_ctrl_c
from ..run.shared import cache_of
from . import corrupted
from .corrupted import Corrupted, ImageNetC, checked_imagenet_c, summarize_corruptions, summarize_imagenet_c
from .elsewhere import Elsewhere, checked_folder, summarize_further
from .embedding import embed
from .kept import is_kept
from .measure import measure
from .predictions import compare_predictions, test_accuracies
from .predictor import predictor_of
from .representations import compare_layers, summarize
from .subjects import FOLDER, Numbers, Subject, drawn, drawn_by_class, measured_once, network_of, plain, subjects_of
from .table import analysis_markdown
from .transfer import Other, other_task, summarize_transfer
from .weights import class_weights, example_weighing_of, measure_alpha, summarize_alpha

IMAGES = 10_000  # of train and of test, for representations

Measure = Callable[[Run], Numbers]


@dataclass(frozen=True)
class Asked:
    """How many images of train and of test at most, and what more than predictions and representations is wanted.

    `pooled` compares layers that are maps by their means over positions.
    """

    images: int = IMAGES
    transfer: tuple[str, ...] = ()
    corruptions: bool = False
    tsne: bool = False
    further: tuple[str, ...] = ()
    imagenet_c: str | None = None
    pooled: bool = False


@dataclass(frozen=True)
class Part:
    """Something to measure of a trained run, by the name it is kept under."""

    name: str
    settings: Numbers
    measure: Measure
    intact: Callable[[Store, str, Numbers], bool] = lambda store, key, found: True


def analyze_study(
    store: Store, asked: Asked, device: torch.device, listener: Listener, *, peek: bool = False
) -> Analysis:
    """Analyze the finished runs, write analysis.json and analysis.md, and give what is in them.

    What was asked for before, with as many images, is kept. Raises `Interrupted` at Ctrl-C; the same call goes on.
    """
    asked = _with_earlier(store, _checked(asked))
    _tell_damaged(store, listener)
    subjects = subjects_of(store)
    if not subjects:
        raise EquipoiseError(f"{store.path} has no finished run to analyze; 'equipoise run' makes them")
    store.note_opening([subject.key for subject in subjects], peek=peek)
    with explained(store.path):
        (store.path / FOLDER).mkdir(exist_ok=True)
    try:
        with on_ctrl_c():
            by_part = _measure_all(store, subjects, _parts(store, asked), device, listener)
            by_part |= _measure_further(store, subjects, asked, device)
            alphas = _measure_alphas(store, subjects, device)
            with listener.steps("Comparing the runs", 1):
                analysis = _together(store, asked, subjects, by_part, alphas)
    except KeyboardInterrupt:
        raise Interrupted from None
    finally:
        forget_cached(cache_of(store))
    analysis = Analysis.from_dict(plain(analysis.to_dict()))  # with as many digits as are written
    store.write(analysis, indent=None)
    store.write_text("analysis.md", analysis_markdown(analysis))
    return analysis


def _tell_damaged(store: Store, listener: Listener) -> None:
    for key in dict.fromkeys(store.study().keys):
        if store.has(key) and (damage := store.damage(key)):
            listener.say(f"Left out: {damage}", "warning")


def _checked(asked: Asked) -> Asked:
    """Task names with all defaults filled in, and whole paths; what is missing shows before anything is measured."""
    names = tuple(str(Spec.parse(name).resolved("task")) for name in asked.transfer)
    for name in names:
        other_task(name)
    imagenet_c = checked_imagenet_c(asked.imagenet_c) if asked.imagenet_c else None
    return replace(asked, transfer=names, further=tuple(map(checked_folder, asked.further)), imagenet_c=imagenet_c)


def _with_earlier(store: Store, asked: Asked) -> Asked:
    """With what an earlier analysis of as many images was asked for; one that is damaged is made anew."""
    if not (store.path / Analysis.FILE).exists():
        return asked
    with suppress(Damaged):
        before = store.document(Analysis)
        if before.asked_images == asked.images:
            return replace(
                asked,
                transfer=tuple(dict.fromkeys([*(part.task for part in before.transfer), *asked.transfer])),
                corruptions=asked.corruptions or before.corruptions is not None,
                imagenet_c=asked.imagenet_c or (before.imagenet_c.folder if before.imagenet_c else None),
                further=tuple(dict.fromkeys([*(part.folder for part in before.further), *asked.further])),
            )
    return asked


# -- one run after the other -----------------------------------------------------------------------------------------


def _parts(store: Store, asked: Asked) -> list[Part]:
    settings = {"images": asked.images, "maps": _maps(asked), "separation": "train"}
    parts = [Part("layers", settings, partial(_measure_layers, store, asked), is_kept)]
    for name in asked.transfer:
        other = Other(name, asked.images)
        parts.append(Part(other.part, other.settings, other.measure))
    if asked.corruptions:
        images, copies = min(asked.images, corrupted.IMAGES), Corrupted()
        parts.append(
            Part("corruptions", {"images": images}, lambda run: copies.measure(run, drawn(run.task.test, images)))
        )
    if asked.imagenet_c:
        files = ImageNetC(asked.imagenet_c, asked.images)
        parts.append(Part("imagenet_c", files.settings, files.measure))
    return parts


def _measure_all(
    store: Store, subjects: Sequence[Subject], parts: Sequence[Part], device: torch.device, listener: Listener
) -> dict[str, dict[str, Numbers]]:
    """For each part, the numbers of each trained run by its key; a run that two methods share is measured once."""
    trained = {s.key: s for s in sorted(subjects, key=lambda s: s.seed) if s.trained}  # a task's seed is loaded once
    by_part: dict[str, dict[str, Numbers]] = {part.name: {} for part in parts}
    with listener.steps("Analyzing", len(trained)) as advance:
        for key, subject in trained.items():
            network = cache(partial(network_of, store, subject.record, device))  # read only if a part needs it
            for part in parts:
                work, intact = partial(_of, part, network), partial(part.intact, store, key)
                by_part[part.name][key] = measured_once(store, key, part.name, part.settings, work, intact)
            advance(f"{subject.method} · seed {subject.seed}")
    return by_part


def _measure_layers(store: Store, asked: Asked, run: Run) -> Numbers:
    train, test = drawn_by_class(run.task.train, asked.images), drawn(run.task.test, asked.images)
    return measure(run, train, test, store, not asked.pooled)


def _maps(asked: Asked) -> str:
    return "pooled" if asked.pooled else "flattened"


def _of(part: Part, network: Callable[[], Run]) -> Numbers:
    return part.measure(network())


def _measure_further(
    store: Store, subjects: Sequence[Subject], asked: Asked, device: torch.device
) -> dict[str, dict[str, Numbers]]:
    """For each folder of further images, the numbers of each run, corrected ones too, by its key."""
    by_part: dict[str, dict[str, Numbers]] = {}
    for elsewhere in _folders(store, asked):
        numbers = by_part[elsewhere.part] = {}
        for subject in sorted(subjects, key=lambda s: s.seed):
            work = partial(_measure_elsewhere, elsewhere, store, subject, device)
            numbers[subject.key] = measured_once(store, subject.key, elsewhere.part, elsewhere.settings, work)
    return by_part


def _folders(store: Store, asked: Asked) -> list[Elsewhere]:
    study = store.study()
    priority = Priority(**study.priority or {"metric": study.metric})
    return [Elsewhere(path, asked.images, priority) for path in asked.further]


def _measure_elsewhere(elsewhere: Elsewhere, store: Store, subject: Subject, device: torch.device) -> Numbers:
    return elsewhere.measure(predictor_of(store, subject, device))


def _measure_alphas(store: Store, subjects: Sequence[Subject], device: torch.device) -> dict[str, Numbers]:
    """Of runs corrected by example weighing: the curve of the network they correct, on validation data."""
    numbers = {}
    for subject in subjects:
        weighing = example_weighing_of(subject)
        if weighing is not None and subject.record.trained_by:
            network = partial(_network_of_key, store, subject.record.trained_by, device)
            work = partial(measure_alpha, network, weighing.metric)
            numbers[subject.key] = measured_once(store, subject.key, "alpha", {"metric": weighing.metric}, work)
    return numbers


def _network_of_key(store: Store, key: str, device: torch.device) -> Run:
    return network_of(store, store.get(key), device)


# -- all runs together -----------------------------------------------------------------------------------------------


def _together(
    store: Store,
    asked: Asked,
    subjects: Sequence[Subject],
    by_part: dict[str, dict[str, Numbers]],
    alphas: dict[str, Numbers],
) -> Analysis:
    study = store.study()
    layers, accuracies = by_part["layers"], test_accuracies(store, subjects)
    separation = {s.key: layers[s.key]["separation"]["cosine"][-1] for s in _known(subjects, layers)}
    corrupted_runs = _known(subjects, by_part.get("corruptions", {}))
    imagenet_c_runs = _known(subjects, by_part.get("imagenet_c", {}))
    weighed = _known(subjects, alphas)
    return Analysis(
        made_by=__version__,
        study=study.name,
        question=study.question,
        baseline=study.baseline,
        asked_images=asked.images,
        problems=_problems(subjects, by_part),
        predictions=compare_predictions(store, subjects),
        weights=class_weights(subjects),
        representations=_representations(store, asked, subjects, layers),
        transfer=tuple(
            summarize_transfer(known, by_part[other.part], other, separation, accuracies)
            for other in (Other(name, asked.images) for name in asked.transfer)
            if (known := _known(subjects, by_part[other.part]))
        ),
        further=tuple(
            summarize_further(known, by_part[elsewhere.part], elsewhere)
            for elsewhere in _folders(store, asked)
            if (known := _known(subjects, by_part[elsewhere.part]))
        ),
        corruptions=summarize_corruptions(corrupted_runs, by_part["corruptions"], study.baseline)
        if corrupted_runs
        else None,
        imagenet_c=summarize_imagenet_c(imagenet_c_runs, by_part["imagenet_c"], asked.imagenet_c or "")
        if imagenet_c_runs
        else None,
        alpha=summarize_alpha(weighed, alphas) if weighed else None,
    )


def _representations(
    store: Store, asked: Asked, subjects: Sequence[Subject], numbers: dict[str, Numbers]
) -> Representations | None:
    known = _known(subjects, numbers)
    if not known:
        return None
    return Representations(
        images=numbers[known[0].key]["images"],
        methods=summarize(known, numbers),
        cka=compare_layers(store, known, numbers, _maps(asked)),
        embedding=embed(store, known, numbers, asked.tsne),
        class_names=known[0].record.class_names,
        training_images=numbers[known[0].key]["training_images"],
    )


def _known(subjects: Sequence[Subject], numbers: dict[str, Numbers]) -> list[Subject]:
    """Those that were measured, and without a problem."""
    return [s for s in subjects if s.key in numbers and "problem" not in numbers[s.key]]


def _problems(subjects: Sequence[Subject], by_part: dict[str, dict[str, Numbers]]) -> tuple[Problem, ...]:
    return tuple(
        Problem(s.method, s.seed, part, numbers[s.key]["problem"])
        for part, numbers in by_part.items()
        for s in subjects
        if "problem" in numbers.get(s.key, {})
    )
