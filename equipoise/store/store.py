"""`Store`: a folder of records and their arrays. A run's folder is there only when it is complete.

DIR/store.json               which schema
DIR/study.json               the question asked, as the report needs it
DIR/runs/KEY/record.json     + weights.safetensors, valid.npz, test.npz; progress.npz and, sealed as test.npz is,
                             progress_test.npz where they were asked for
DIR/unfinished/KEY/          checkpoints of runs under way
DIR/locks/KEY                held (flock) by the process at work on KEY; the system frees it when that dies
DIR/opened.json              when test outputs were read, of which runs, what was compared, and whether too early
DIR/damaged/                 what was found damaged, set aside

A record has the checksums of the files beside it, and each JSON file one of itself. They are looked at whenever a file
is read. Files of before there were checksums are read without.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .. import __version__
from ..core import EquipoiseError
from ..core.files import checksum, sync_folder, write_whole
from .analysis import Analysis
from .arrays import Arrays, from_npz, to_npz
from .audited import Audited
from .checked_json import from_bytes, has_checksum, to_bytes
from .confused import Confused
from .convergence import Convergence
from .damage import Damaged, content_of, explained, understood
from .documents import Comparison, Document, Opened, Opening, StudyDocument
from .record import SCHEMA, Record, check_schema
from .sensitivity import Sensitivity
from .shapes import table

T = TypeVar("T")
D = TypeVar("D", bound=Document)

MARKER = "store.json"
RECORD = "record.json"
WEIGHTS = "weights.safetensors"
VERDICT = "verdict.json"
TRAINED_AGAIN = "'equipoise run' sets this run aside and trains it again"
# They have had a schema only since there were checksums: with the one and without the other, somebody changed them.
ALWAYS_CHECKED = (Opened.FILE, Convergence.FILE, Audited.FILE, Confused.FILE)
REMEDIES = {
    MARKER: f'it only says how the folder is written: where all else is whole, put {{"schema": {SCHEMA}}} into it',
    StudyDocument.FILE: "'equipoise run' with the file of the study writes it again",
    Opened.FILE: "the next report sets it aside and begins it anew",
    "engine.json": "delete it and run the same command again: what it holds is measured anew, and runs to come may "
    "differ from earlier ones in rounding",
    "sequential.json": "restore it from a copy, for without the plan of its looks nothing can be claimed; or begin "
    "anew in another folder with --out",
    Convergence.FILE: "'equipoise run' with the file of the study writes it again",
    Analysis.FILE: "'equipoise analyze' writes it again",
    Sensitivity.FILE: "'equipoise tune' writes it again",
    Audited.FILE: "'equipoise report' writes it again where the audit is still there; or delete it",
    Confused.FILE: "'equipoise report' writes it again where the images can be read",
    VERDICT: "'equipoise report' writes it again",
}


class Store:
    """The folder of a study. `Store(path)` only looks; `create` makes the folder."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        if self.exists:
            self.read(MARKER, lambda plain: check_schema(plain["schema"], f"the store {self.path}"))
        elif (self.path / "runs").exists():
            raise EquipoiseError(f"{self.path} has runs but no {MARKER}: it is not a store; choose another folder")

    @property
    def exists(self) -> bool:
        return (self.path / MARKER).exists()

    def create(self) -> Store:
        """Make the folder; calling it again changes nothing.

        What says that it is a store comes first: killed in between, it is one, and the next call makes the rest.
        """
        with explained(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            if not self.exists:
                self.write_json(MARKER, {"schema": SCHEMA, "made_by": __version__})
            for name in ("runs", "unfinished", "locks"):
                (self.path / name).mkdir(exist_ok=True)
        return self

    # -- records ---------------------------------------------------------------------------------------------------

    def has(self, key: str) -> bool:
        return (self._run(key) / RECORD).exists()

    def get(self, key: str) -> Record:
        path = self._run(key) / RECORD
        record = _read(path, TRAINED_AGAIN, Record.from_dict)
        if record.key != key:
            raise Damaged(path, f"it is the record of {record.key}", TRAINED_AGAIN)
        return record

    def finished(self, key: str) -> bool:
        """Whether the run is there and did not fail, as far as its record can be read."""
        with suppress(Damaged):
            return self.has(key) and self.get(key).finished
        return False

    def records(self) -> list[Record]:
        """All records that can be read, finished and failed, by key."""
        readable = []
        for key in self._keys():
            with suppress(Damaged):
                readable.append(self.get(key))
        return readable

    def _keys(self) -> list[str]:
        return [folder.name for folder in sorted((self.path / "runs").glob("*")) if self.has(folder.name)]

    def put(self, record: Record, arrays: Mapping[str, Arrays] | None = None, weights: bytes | None = None) -> None:
        """Write a run aside, fsync it, rename it into place. Needs the claim of its key."""
        with explained(self.path):
            files = {f"{name}.npz": to_npz(group) for name, group in (arrays or {}).items()}
        if weights is not None:
            files[WEIGHTS] = weights
        record = replace(record, files={name: checksum(data) for name, data in files.items()})
        self._place(record.key, files, to_bytes(record.to_dict()))

    def _place(self, key: str, files: Mapping[str, bytes], record: bytes) -> None:
        aside = self.path / "unfinished" / f"{key}.result"
        with explained(self.path):
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)
            for name, data in files.items():
                write_whole(aside / name, data)
            write_whole(aside / RECORD, record)
            if not self.has(key) and self._run(key).exists():
                self._set_aside(self._run(key))  # what is left of a run without its record
            os.rename(aside, self._run(key))
            sync_folder(self.path / "runs")
            shutil.rmtree(self.scratch(key), ignore_errors=True)

    def files_of(self, key: str) -> dict[str, bytes]:
        """A run as it lies here, for `adopt` of a store on another machine; nobody looks into it on the way."""
        return {path.name: path.read_bytes() for path in sorted(self._run(key).iterdir())}

    def adopt(self, key: str, files: Mapping[str, bytes]) -> None:
        """Put a run into place that another store has written. Needs the claim of its key.

        Raises `Damaged` where it is not what that store wrote.
        """
        rest = {name: data for name, data in files.items() if name != RECORD}
        path = self._run(key) / RECORD
        record = _understood(path, files.get(RECORD, b""), TRAINED_AGAIN, Record.from_dict)
        if record.key != key or record.files != {name: checksum(data) for name, data in rest.items()}:
            raise Damaged(path, "it came with other files than it was written with", TRAINED_AGAIN)
        self._place(key, rest, files[RECORD])

    def remove(self, key: str) -> None:
        """Forget a run, so that it is done again."""
        shutil.rmtree(self._run(key), ignore_errors=True)

    def forget_failures(self) -> None:
        """Remove the records of failed runs, so that they are done again."""
        for record in self.records():
            if not record.finished:
                self.remove(record.key)

    def valid(self, key: str) -> dict[str, np.ndarray]:
        """Outputs on the validation data: logits, features, labels; see `to_npz` for how they are kept."""
        return self._arrays(key, "valid")

    def test_sealed(self, key: str) -> dict[str, np.ndarray]:
        """Outputs on the test data, for code that passes them on without looking (post-hoc methods)."""
        return self._arrays(key, "test")

    def progress(self, key: str) -> dict[str, np.ndarray]:
        """What was seen of the classes while training, moments first; empty where the study did not ask for it."""
        return self._arrays_if_there(key, "progress")

    def weights(self, key: str) -> bytes:
        return self._bytes(key, WEIGHTS)

    def _arrays_if_there(self, key: str, name: str) -> dict[str, np.ndarray]:
        there = (self._run(key) / f"{name}.npz").exists() or f"{name}.npz" in self.get(key).files
        return self._arrays(key, name) if there else {}

    def _arrays(self, key: str, name: str) -> dict[str, np.ndarray]:
        data = self._bytes(key, f"{name}.npz")
        try:
            return from_npz(data)
        except ValueError as error:
            raise Damaged(self._run(key) / f"{name}.npz", str(error), TRAINED_AGAIN) from None

    def _bytes(self, key: str, name: str) -> bytes:
        """A file of a run, if it is what was written."""
        path, sums = self._run(key) / name, self.get(key).files
        data = content_of(path, TRAINED_AGAIN)
        if sums and sums.get(name) != checksum(data):
            raise Damaged(path, "its checksum does not match", TRAINED_AGAIN)
        return data

    # -- openings of the test set ----------------------------------------------------------------------------------

    def open_test(self, key: str) -> dict[str, np.ndarray]:
        """Outputs on the test data, for the report. That they were opened is written down."""
        self.note_opening([key])
        return self.test_sealed(key)

    def open_progress(self, key: str) -> dict[str, np.ndarray]:
        """What was seen of test images while training, moments first, for the report; empty where nothing was.

        That it was opened is written down.
        """
        self.note_opening([key])
        return self._arrays_if_there(key, "progress_test")

    def opened(self) -> Opened | None:
        """What was opened so far; None if nothing was."""
        return self.document(Opened) if self.holds(Opened) else None

    def was_opened(self) -> bool:
        """Whether test outputs were ever read, as far as can be told: a verdict tells of it where the list is gone."""
        if self.holds(Opened):
            return True
        if not (self.path / VERDICT).exists():
            return False
        try:
            return self.read(VERDICT, lambda plain: any(method["n"] for method in plain["methods"]))
        except Damaged:
            return True

    def note_opening(self, keys: Iterable[str], *, peek: bool = False) -> None:
        """Record permanently that the test outputs of these runs are read; `peek`: before their study has ended.

        Runs that were opened before add nothing, so that a report written twice says the same.
        """
        opened = self._opened_so_far()
        new = tuple(sorted({*keys} - opened.keys))
        if new:
            opening = Opening(now(), __version__, peek, new)
            self._write_opened(replace(opened, openings=(*opened.openings, opening)))

    def note_comparison(self, comparison: Comparison) -> None:
        """Record permanently what is compared on the test set; the same a second time adds nothing."""
        opened = self._opened_so_far()
        if not any(comparison.says_as_much_as(before) for before in opened.comparisons):
            self._write_opened(replace(opened, comparisons=(*opened.comparisons, comparison)))

    def _opened_so_far(self) -> Opened:
        """The list, or a new one that says whether one was lost: what it held is not known, but must not stop all."""
        try:
            if opened := self.opened():
                return opened
            lost = self.was_opened()
        except Damaged:
            with explained(self.path):
                self._set_aside(self.path / Opened.FILE)
            lost = True
        return Opened(now(), __version__, lost=now() if lost else None)

    def _write_opened(self, opened: Opened) -> None:
        self.write(opened)

    # -- damage ----------------------------------------------------------------------------------------------------

    def damage(self, key: str) -> Damaged | None:
        """What is wrong with the files of a run, if anything; every one of them is read."""
        try:
            for name in self.get(key).files:
                self._bytes(key, name)
            for path in self._run(key).glob("*.npz"):  # of files without checksums this is all that can be known
                self._arrays(key, path.stem)
        except Damaged as problem:
            return problem
        return None

    def set_aside_damaged(self, keys: Iterable[str] | None = None) -> list[Damaged]:
        """Move the damaged ones of these runs, or of all, to damaged/, so that they are done again; what was wrong.

        A run that another process is at work on is left to it.
        """
        damaged = []
        for key in dict.fromkeys(self._keys() if keys is None else keys):
            if self.has(key) and self.damage(key):
                with self.claim(key) as mine, explained(self.path):
                    if mine and self.has(key) and (damage := self.damage(key)):  # as it is now that nobody else may
                        self._set_aside(self._run(key))
                        damaged.append(damage)
        return damaged

    def _set_aside(self, path: Path) -> None:
        folder = self.path / "damaged"
        folder.mkdir(exist_ok=True)
        places = (folder / (path.name if not i else f"{path.name}.{i}") for i in range(10**6))
        os.rename(path, next(place for place in places if not place.exists()))
        sync_folder(folder)

    # -- work under way --------------------------------------------------------------------------------------------

    def scratch(self, key: str) -> Path:
        """Where a run under way keeps its checkpoint."""
        return self.path / "unfinished" / key

    @contextmanager
    def claim(self, key: str) -> Iterator[bool]:
        """True while this process alone may work on `key`; False at once if another one does."""
        with explained(self.path):
            descriptor = os.open(self.path / "locks" / key, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine = True
        except BlockingIOError:
            mine = False
        try:
            yield mine
        finally:
            os.close(descriptor)

    def is_claimed(self, key: str) -> bool:
        """Whether some process is at work on `key` now."""
        try:
            with open(self.path / "locks" / key) as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    # -- small files -----------------------------------------------------------------------------------------------

    def read(self, name: str, reader: Callable[[Any], T]) -> T:
        """A JSON document as its reader understands it; what it does not understand is damage."""
        path = self.path / name
        if path.exists():
            return _read(path, REMEDIES.get(name, "restore it from a copy, or delete it"), reader)
        if self.path.is_file():
            raise EquipoiseError(f"{self.path} is a file; give the folder that 'equipoise run' wrote")
        raise EquipoiseError(f"{path} is not there: {path.parent} holds no study; 'equipoise run' makes one")

    def holds(self, kind: type[Document]) -> bool:
        return (self.path / kind.FILE).exists()

    def document(self, kind: type[D]) -> D:
        return self.read(kind.FILE, kind.from_dict)

    def write(self, document: Document, *, indent: int | None = 1) -> None:
        self.write_json(document.FILE, {"schema": SCHEMA, **document.to_dict()}, indent=indent)

    def study(self) -> StudyDocument:
        """The question asked."""
        return self.document(StudyDocument)

    def read_json(self, name: str) -> dict[str, Any]:
        return self.read(name, table)

    def write_json(self, name: str, content: Mapping[str, Any], *, indent: int | None = 1) -> None:
        self._write(name, to_bytes(content, indent=indent))

    def write_text(self, name: str, text: str) -> None:
        """Text for people: what is not Unicode in it, as a folder's name can be, is written as an escape."""
        self._write(name, text.encode("utf-8", "backslashreplace"))

    def _write(self, name: str, data: bytes) -> None:
        with explained(self.path):
            write_whole(self.path / name, data)

    def _run(self, key: str) -> Path:
        return self.path / "runs" / key


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _read(path: Path, remedy: str, reader: Callable[[Any], T]) -> T:
    return _understood(path, content_of(path, remedy), remedy, reader)


def _understood(path: Path, data: bytes, remedy: str, reader: Callable[[Any], T]) -> T:
    """What the file at `path`, which has or will have this content, says."""
    with understood(path, remedy):
        content = from_bytes(data)
        if isinstance(content, Mapping) and "schema" in content:  # opened.json of before it had one is the first
            check_schema(content["schema"], str(path))
            if path.name in ALWAYS_CHECKED and not has_checksum(data):
                raise ValueError("its checksum is gone")
        return reader(content)
