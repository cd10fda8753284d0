"""What an audit found of a study's images, noted in its store: the report says whether the splits can be trusted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..core import EquipoiseError, Spec
from ..data.place import PLACE
from ..store import Audited, Store


def note_audit(store: Store) -> None:
    """Write audited.json where an audit of the images lies in the store, beside the images, or in audits/ here."""
    with suppress(EquipoiseError):  # no study, or a store that cannot be written: who reads the results says so
        found = next(_audits(store), None)
        if found is not None and not _is_noted(store, found):
            store.write(found)


def _is_noted(store: Store, found: Audited) -> bool:
    with suppress(EquipoiseError):  # a damaged one is written anew
        return store.holds(Audited) and store.document(Audited) == found
    return False


def _audits(store: Store) -> Iterator[Audited]:
    tasks = {method.recipe["task"]["name"] for method in store.study().methods if method.recipe.get("task")}
    folders = [dict(Spec.parse(task).params).get(PLACE) for task in tasks]
    for images in (Path(folder).expanduser() for folder in folders if isinstance(folder, str)):
        places = (store.path / "audit", images.parent / "audits" / images.name, Path("audits") / images.name)
        yield from filter(None, (_read(place, images) for place in places))


def _read(place: Path, images: Path) -> Audited | None:
    """The audit in a folder, if it is one of these images."""
    try:
        plain = json.loads((place / "audit.json").read_bytes())
        if plain["folder"] != str(images.resolve()):
            return None
        cases: dict[str, list[Any]] = {finding["kind"]: finding["cases"] for finding in plain["findings"]}
        torn = len(cases.get("two_parts", ())) + len(cases.get("torn_groups", ()))
        group = plain["proposed_group"]
        return Audited(str(place), len(cases.get("duplicates", ())), torn, None if group is None else str(group))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # there is none, or it is none of ours
        return None
