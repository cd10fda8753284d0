"""`Store`: a folder of records and their arrays. A run's folder is there only when it is complete.

DIR/store.json               which schema
DIR/study.json               the question asked, as the report needs it
DIR/runs/KEY/record.json     + weights.safetensors, valid.npz, test.npz, and progress.npz where it was asked for
DIR/unfinished/KEY/          checkpoints of runs under way
DIR/locks/KEY                held (flock) by the process at work on KEY; the system frees it when that dies
DIR/opened.json              when test outputs were read, of which runs, by which version, and whether too early
"""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..core import EquipoiseError
from ..files import sync_folder, write_whole
from .record import SCHEMA, Record, check_schema

Arrays = Mapping[str, np.ndarray]


class Store:
    """The folder of a study. `Store(path)` only looks; `create` makes the folder."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        marker = self.path / "store.json"
        if marker.exists():
            check_schema(_read_json(marker).get("schema"), f"the store {self.path}")
        elif (self.path / "runs").exists():
            raise EquipoiseError(f"{self.path} has runs but no store.json: it is not a store; choose another folder")

    @property
    def exists(self) -> bool:
        return (self.path / "store.json").exists()

    def create(self) -> Store:
        """Make the folder; calling it again changes nothing."""
        with explained(self.path):
            for name in ("runs", "unfinished", "locks"):
                (self.path / name).mkdir(parents=True, exist_ok=True)
            if not self.exists:
                self.write_json("store.json", {"schema": SCHEMA, "made_by": __version__})
        return self

    # -- records ---------------------------------------------------------------------------------------------------

    def has(self, key: str) -> bool:
        return (self._run(key) / "record.json").exists()

    def get(self, key: str) -> Record:
        return Record.from_json((self._run(key) / "record.json").read_text())

    def records(self) -> list[Record]:
        """All records, finished and failed, by key."""
        return [self.get(folder.name) for folder in sorted((self.path / "runs").glob("*")) if self.has(folder.name)]

    def put(self, record: Record, arrays: Mapping[str, Arrays] | None = None, weights: bytes | None = None) -> None:
        """Write a run aside, fsync it, rename it into place. Needs the claim of its key."""
        aside = self.path / "unfinished" / f"{record.key}.result"
        with explained(self.path):
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)
            for name, group in (arrays or {}).items():
                write_whole(aside / f"{name}.npz", _npz(_halved(group)))
            if weights is not None:
                write_whole(aside / "weights.safetensors", weights)
            write_whole(aside / "record.json", record.to_json().encode())
            os.rename(aside, self._run(record.key))
            sync_folder(self.path / "runs")
            shutil.rmtree(self.scratch(record.key), ignore_errors=True)

    def remove(self, key: str) -> None:
        """Forget a run, so that it is done again."""
        shutil.rmtree(self._run(key), ignore_errors=True)

    def valid(self, key: str) -> dict[str, np.ndarray]:
        """Outputs on the validation data: logits, features, labels; see `_halved` for how they are kept."""
        return _read_npz(self._run(key) / "valid.npz")

    def test_sealed(self, key: str) -> dict[str, np.ndarray]:
        """Outputs on the test data, for code that passes them on without looking (post-hoc methods)."""
        return _read_npz(self._run(key) / "test.npz")

    def open_test(self, key: str) -> dict[str, np.ndarray]:
        """Outputs on the test data, for the report. That they were opened is written down."""
        self.note_opening([key])
        return self.test_sealed(key)

    def note_opening(self, keys: Iterable[str], *, peek: bool = False) -> None:
        """Write down, for ever, that the test outputs of these runs are read; `peek`: before their study has ended.

        Runs that were opened before add nothing, so that a report written twice says the same.
        """
        file: dict[str, Any] = {"first_opened": now(), "by_version": __version__}
        if (self.path / "opened.json").exists():
            file = self.read_json("opened.json")
        openings = file.get("openings", [])
        new = sorted({*keys}.difference(*(opening["keys"] for opening in openings)))
        if new:
            openings = [*openings, {"when": now(), "by_version": __version__, "peek": peek, "keys": new}]
            self.write_json("opened.json", {**file, "openings": openings})

    def progress(self, key: str) -> dict[str, np.ndarray]:
        """What was seen of the classes while training, moments first; empty where the study did not ask for it."""
        path = self._run(key) / "progress.npz"
        return _read_npz(path) if path.exists() else {}

    def weights(self, key: str) -> bytes:
        return (self._run(key) / "weights.safetensors").read_bytes()

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

    def read_json(self, name: str) -> dict[str, Any]:
        return _read_json(self.path / name)

    def write_json(self, name: str, content: Any) -> None:
        self.write_text(name, json.dumps(content, indent=1, ensure_ascii=False))

    def write_text(self, name: str, text: str) -> None:
        with explained(self.path):
            write_whole(self.path / name, text.encode())

    def _run(self, key: str) -> Path:
        return self.path / "runs" / key


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the system's errors about a folder into words that say what to do."""
    remedies = {
        errno.ENOSPC: "the disk is full; make room and run the same command again",
        errno.EDQUOT: "your disk quota is used up; make room and run the same command again",
        errno.EROFS: "the disk is read-only; choose another folder with --out",
        errno.EACCES: "you may not write there; choose another folder with --out",
        errno.ENOTDIR: "a file is in the way; choose another folder with --out",
        errno.EEXIST: "a file is in the way; choose another folder with --out",
    }
    try:
        yield
    except OSError as error:
        if error.errno not in remedies:
            raise
        raise EquipoiseError(f"cannot write to {path}: {remedies[error.errno]}. Finished runs are kept.") from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        raise EquipoiseError(f"{path} is not there: {path.parent} holds no study; 'equipoise run' makes one") from None
    except ValueError:
        raise EquipoiseError(f"{path} is damaged: it is not JSON; restore it or choose another folder") from None
    return content


def _halved(arrays: Arrays) -> Arrays:
    """Outputs in half precision, without loss of what matters.

    The largest logit of each row becomes 0: the softmax stays as it is, and the numbers near the largest, which decide
    the prediction, are those that half precision keeps best.
    """
    half = {name: array.astype(np.float16) for name, array in arrays.items() if name == "features"}
    if "logits" in arrays:
        logits = arrays["logits"].astype(np.float32)
        below = logits - logits.max(axis=1, keepdims=True)
        half["logits"] = below.clip(min=np.finfo(np.float16).min).astype(np.float16)
    return {**arrays, **half}


def _npz(arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    # opened here because np.load leaves its own file open when the archive is damaged
    with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        return {name: file[name].astype(np.float32) if name == "logits" else file[name] for name in file.files}
