"""Who takes part in a search: one process (`Alone`), or many on any number of machines, through a database (`Shared`).

All who take part go through the same waves: proposals depend on scores alone, so that each of them knows what is due.
What they share is which of it is done, what it came to, and who is at it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from ...core import EquipoiseError
from ...core.extras import require
from ...store import Record, Store
from ...store.checked_json import from_bytes, to_bytes
from ..run.job import Job
from .aim import Aim
from .records import Records

POSTGRESQL = "postgresql"
SETUP = "equipoise set-up"  # the lock of those who make tables; all others are named after a search

# A machine that is gone is noticed by the server after a minute, which then frees its claims.
KEEPALIVES = "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3"

TABLE = """CREATE TABLE IF NOT EXISTS equipoise_runs
    (search TEXT NOT NULL, run TEXT NOT NULL, record BYTEA NOT NULL, PRIMARY KEY (search, run))"""


class Alone:
    """One process: what its store has is done, and all that is due is its own to do."""

    words = ""  # what a user should know of it

    def __init__(self, store: Store) -> None:
        self.records: Records = store

    def setup(self) -> AbstractContextManager[None]:
        """Within, nobody else makes tables, or the first entries of a search."""
        return nullcontext()

    def turn(self) -> AbstractContextManager[None]:
        """Within, nobody else asks or tells a search."""
        return nullcontext()

    def has_news(self, keys: Iterable[str]) -> bool:
        """Whether others have done some of these runs since the last time."""
        return False

    def taken(self, jobs: Sequence[Job]) -> list[Job]:
        """Those of the jobs due that this process is to do."""
        return list(jobs)

    def done(self, job: Job) -> None:
        """Tell the others what a job came to, and that nobody is at it any more."""

    def close(self) -> None:
        """Leave the others, who may take what is not done."""


class Shared(Alone):
    """Many processes, each with a folder of its own, that meet in a PostgreSQL database.

    A job under way is an advisory lock of the server, which frees it when the process ends or is killed: then another
    takes the job. Records that have come from others are kept here; the first to arrive counts.
    """

    def __init__(self, url: str, search: str, store: Store, aim: Aim, most: int) -> None:
        self.search, self.store, self.aim, self.most = search, store, aim, most
        self.records = self
        self.words = f"Shared through {shown_url(url)}, as {search!r}."
        self.known: dict[str, Record] = {}
        self.held: set[str] = set()  # the keys of the jobs that are ours
        self.connection = _connected(url)
        with self.setup():
            self._do(TABLE)

    # -- records, as a store has them --------------------------------------------------------------------------------

    def has(self, key: str) -> bool:
        return key in self.known

    def get(self, key: str) -> Record:
        return self.known[key]

    def valid(self, key: str) -> dict[str, Any]:
        """Outputs are with those who made them; records that are shared have their score."""
        return self.store.valid(key)

    # -- what is shared ----------------------------------------------------------------------------------------------

    def setup(self) -> AbstractContextManager[None]:
        return self._locked(SETUP)

    def turn(self) -> AbstractContextManager[None]:
        return self._locked("turn")

    def has_news(self, keys: Iterable[str]) -> bool:
        missing = [key for key in keys if key not in self.known]
        query = "SELECT run, record FROM equipoise_runs WHERE search = :search AND run = ANY(:runs)"
        found = self._do(query, search=self.search, runs=missing).all() if missing else []
        self.known |= {run: Record.from_dict(from_bytes(record)) for run, record in found}
        return bool(found)

    def taken(self, jobs: Sequence[Job]) -> list[Job]:
        """So many that the workers here have something to do; the rest is for others."""
        return [job for job in jobs if self._claim(job)]

    def done(self, job: Job) -> None:
        self._publish(job)
        self._release(job)

    def close(self) -> None:
        self.connection.close()

    # -- claims ------------------------------------------------------------------------------------------------------

    def _claim(self, job: Job) -> bool:
        key = job.training.key
        if key in self.held:
            return True
        if len(self.held) >= self.most or not self._do("SELECT pg_try_advisory_lock(:n)", n=self._number(key)).scalar():
            return False
        self.held.add(key)
        if job.finished_in(self.store):  # by an earlier process of ours, which could not tell
            self._publish(job)
        self.has_news(recipe.key for recipe in job.recipes)
        if all(self.has(recipe.key) for recipe in job.recipes):  # done since we asked
            self._release(job)
            return False
        return True

    def _release(self, job: Job) -> None:
        self.held.remove(job.training.key)
        self._do("SELECT pg_advisory_unlock(:n)", n=self._number(job.training.key))

    def _publish(self, job: Job) -> None:
        insert = "INSERT INTO equipoise_runs VALUES (:search, :run, :record) ON CONFLICT DO NOTHING"
        for recipe in job.recipes:
            if self.store.has(recipe.key):
                record = to_bytes(self._scored(self.store.get(recipe.key)).to_dict(), indent=None)
                self._do(insert, search=self.search, run=recipe.key, record=record)

    def _scored(self, record: Record) -> Record:
        """What others need to know of a record: its score, also where that is not one of those that records have."""
        if not record.finished:
            return record
        name, curve = f"valid_{self.aim.metric}", list(self.aim.curve(record, self.store))
        return replace(record, curves={name: curve}, metrics={name: curve[-1]}) if curve else record

    # -- the database ------------------------------------------------------------------------------------------------

    def _do(self, statement: str, **values: Any) -> Any:
        from sqlalchemy import text

        return self.connection.execute(text(statement), values)

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        number = self._number(name)
        self._do("SELECT pg_advisory_lock(:n)", n=number)
        try:
            yield
        finally:
            self._do("SELECT pg_advisory_unlock(:n)", n=number)

    def _number(self, name: str) -> int:
        """The server's locks have 64-bit numbers for names."""
        lock = name if name == SETUP else f"{self.search} {name}"
        return int.from_bytes(hashlib.sha256(lock.encode()).digest()[:8], signed=True)


def is_shared(url: str | None) -> bool:
    return url is not None and url.startswith(POSTGRESQL)


def with_driver(url: str) -> str:
    """A URL of PostgreSQL with the driver that our extra brings, unless the user chose one; other URLs as they are."""
    if not url.startswith(f"{POSTGRESQL}://"):
        return url
    require("--storage postgresql://…", "psycopg")
    return url.replace(f"{POSTGRESQL}://", f"{POSTGRESQL}+psycopg://", 1)


def shown_url(url: str) -> str:
    """The URL without its password."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(url).render_as_string()
    except ArgumentError:
        return url


def _connected(url: str) -> Any:
    from sqlalchemy import NullPool, create_engine
    from sqlalchemy.exc import SQLAlchemyError

    options: dict[str, Any] = {"isolation_level": "AUTOCOMMIT", "connect_args": {"options": KEEPALIVES}}
    try:
        return create_engine(with_driver(url), poolclass=NullPool, **options).connect()
    except (SQLAlchemyError, ModuleNotFoundError) as error:
        raise EquipoiseError(f"the storage {shown_url(url)} cannot be opened: {error}") from None
