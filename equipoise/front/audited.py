"""What an audit found of a study's images, noted in its store: the report says whether the splits can be trusted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..auditing import SAW, changes_since
from ..core import EquipoiseError, Spec
from ..data.place import PLACE, PLACES
from ..store import Audited, Store
from ..study import Study


def note_audit(store: Store) -> None:
    """Write audited.json where there is an audit of the images; `_places` says where it may lie."""
    with suppress(EquipoiseError):  # no study, or a store that cannot be written: who reads the results says so
        tasks = {method.recipe["task"]["name"] for method in store.study().methods if method.recipe.get("task")}
        found = next(_audits(tasks, store.path), None)
        if found is not None and not _is_noted(store, found):
            store.write(found)


def outdated_audits(study: Study, store: Store) -> list[str]:
    """A sentence for each audit of the study's images that saw other files than there are now."""
    with suppress(EquipoiseError):  # images that cannot be read: who loads them says so
        found = _audits({recipe.task.name for recipe in study.methods.values()}, store.path)
        return [f"{audit.outdated}; run 'equipoise audit' again." for audit in found if audit.outdated]
    return []


def _is_noted(store: Store, found: Audited) -> bool:
    """Whether this audit is noted. Its note stays as it is: the study saw the images as they were at that time."""
    with suppress(EquipoiseError):  # a damaged one is written anew
        if store.holds(Audited):
            return replace(store.document(Audited), outdated=found.outdated) == found
    return False


def _audits(tasks: Iterable[str], out: Path) -> Iterator[Audited]:
    """The first audit of each task's images. Without the images nothing can be said of an audit."""
    for task in sorted(tasks):
        given = dict(Spec.parse(task).params)
        paths = {name: Path(given[name]).expanduser() for name in PLACES if isinstance(given.get(name), str)}
        images = paths.pop(PLACE, None)
        if images is not None and images.exists():
            found = (_read(place, images) for place in _places(images, out, paths.values()))
            yield from filter(None, [next(filter(None, found), None)])


def _places(images: Path, out: Path, lists: Iterable[Path]) -> Iterator[Path]:
    """Where an audit may lie: with the lists that the task reads, with the study, beside the images, or here."""
    yield from (file.parent for file in lists)
    yield out / "audit"
    yield images.parent / "audits" / images.name
    yield Path("audits") / images.name


def _read(place: Path, images: Path) -> Audited | None:
    """The audit in a folder, if it is one of these images."""
    try:
        plain = json.loads((place / "audit.json").read_bytes())
        if plain["folder"] != str((images.parent if images.is_file() else images).resolve()):
            return None
        cases: dict[str, list[Any]] = {finding["kind"]: finding["cases"] for finding in plain["findings"]}
        group = plain["proposed_group"]
        saw = hashlib.sha256((place / SAW).read_bytes()).hexdigest()[:16] if (place / SAW).is_file() else ""
        return Audited(
            place=str(place),
            copies=len(cases.get("duplicates", ())),
            torn=len(cases.get("two_parts", ())) + len(cases.get("torn_groups", ())),
            group=None if group is None else str(group),
            saw=saw,
            outdated=_outdated(place, images),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # there is none, or it is none of ours
        return None


def _outdated(place: Path, images: Path) -> str:
    """What has happened since the audit, or empty."""
    changes = changes_since(place, images)
    if changes is None:
        return f"the audit in {place} is of an earlier version and does not tell which images it saw"
    return f"{changes} since the audit in {place}" if changes else ""
