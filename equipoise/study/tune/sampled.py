"""Optuna's samplers and pruner behind the same three questions as the grid: `ask`, `hopeless`, `tell`."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, RDBStorage
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from ...core import EquipoiseError
from .axis import Axis
from .company import shown_url
from .space import Point

WAVE = 4  # trials proposed at a time; a fixed number, so that results do not depend on how many workers there are
DUPLICATES = 20  # proposals of known points in a row before points are drawn evenly
_DUPLICATE = "duplicate"  # marks a trial of Optuna's that repeats another: it is not run and does not count
_FAILED = "failed"  # marks one that was not pruned for its score, but because a run of it failed


class SampledSearch:
    """A study in Optuna's storage. What is there already is asked for first, so a search goes on where it was killed.

    Each proposal has a random stream of its own, from the study's name and the number of trials before it. So a search
    that was interrupted proposes what it would have proposed.
    """

    def __init__(
        self,
        axes: Mapping[str, Axis],
        start: Point,
        budget: int,
        *,
        higher_is_better: bool,
        sampler: str,
        prunes: bool,
        name: str,
        storage: BaseStorage,
    ) -> None:
        self.axes, self.budget, self.sampler, self.prunes = dict(axes), budget, sampler, prunes
        self.seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4])
        self.known: dict[tuple[Any, ...], float | None] = {}
        self.wave: list[tuple[tuple[Any, ...], optuna.Trial]] = []
        self.dropped: set[int] = set()  # found hopeless in this call
        self.study = optuna.create_study(
            storage=storage,
            study_name=name,
            direction="maximize" if higher_is_better else "minimize",
            pruner=optuna.pruners.MedianPruner(),
            load_if_exists=True,
        )
        # not `if no trial is there`: a search killed while it took the first one up would never try the start
        if not any(t.state == TrialState.WAITING or self._is_whole(t) for t in self.study.get_trials(deepcopy=False)):
            self.study.enqueue_trial(self._encoded(start))

    def ask(self) -> list[Point]:
        """The next wave: what the storage has, from an earlier call or of another process, and what fills it up."""
        size = min(WAVE - len(self.known) % WAVE, self.budget - len(self.known))
        self.wave = list(islice(self._stored(), size))
        self.known |= dict.fromkeys(values for values, _ in self.wave)
        while len(self.wave) < size:
            values, trial = self._proposed()
            self.known[values] = None
            self.wave.append((values, trial))
        return [dict(zip(self.axes, values, strict=True)) for values, _ in self.wave]

    def hopeless(self, place: int, runs: int, value: float) -> bool:
        """Whether a trial is, after so many runs, below the median of all others after as many."""
        trial = self.wave[place][1]
        frozen = _frozen(trial)
        if frozen.state.is_finished():
            pruned = frozen.state == TrialState.PRUNED and _FAILED not in frozen.user_attrs
            return pruned and runs >= max(frozen.intermediate_values)
        if runs not in frozen.intermediate_values:
            trial.report(value, runs)
        if trial.should_prune():
            self.dropped.add(trial.number)
        return trial.number in self.dropped

    def tell(self, values: Sequence[float | None]) -> None:
        """The scores of the wave; None for a trial that failed or was pruned, which samplers learn from too."""
        for (point, trial), value in zip(self.wave, values, strict=True):
            self.known[point] = value
            if _frozen(trial).state.is_finished():
                continue
            if value is None and trial.number not in self.dropped:
                trial.set_user_attr(_FAILED, True)
            self.study.tell(trial, value, TrialState.PRUNED if value is None else TrialState.COMPLETE)

    def _stored(self) -> Iterator[tuple[tuple[Any, ...], optuna.Trial]]:
        """Trials that are not known yet; one whose process was killed before it had all its values is dropped."""
        found = [t for t in self.study.get_trials(deepcopy=False) if t.state != TrialState.WAITING]
        whole = [t for t in found if self._is_whole(t) and _DUPLICATE not in t.user_attrs]
        for trial in found:
            if trial.state == TrialState.RUNNING and trial not in whole:
                self.study.tell(trial.number, state=TrialState.FAIL)
        for trial in whole:
            values = self._decoded(trial.params)
            if values not in self.known:
                yield values, optuna.Trial(self.study, trial._trial_id)

    def _is_whole(self, trial: FrozenTrial) -> bool:
        """Whether it has all its values: they are stored one by one."""
        return len(trial.params) == len(self.axes)

    def _proposed(self) -> tuple[tuple[Any, ...], optuna.Trial]:
        """A point that is not known yet."""
        for attempt in range(1000 * DUPLICATES):
            seed = (self.seed + 1009 * len(self.known) + attempt) % 2**32
            self.study.sampler = self._sampler(seed)
            if attempt >= DUPLICATES:
                self.study.enqueue_trial(self._drawn(seed))
            trial = self.study.ask(self._distributions())
            values = self._decoded(trial.params)
            if values not in self.known:
                return values, trial
            trial.set_user_attr(_DUPLICATE, True)
            value = self.known[values]
            self.study.tell(trial, value, TrialState.FAIL if value is None else TrialState.COMPLETE)
        raise EquipoiseError("the search finds no new values; give it more of them, or lower trials")

    def _sampler(self, seed: int) -> optuna.samplers.BaseSampler:
        if self.sampler == "random":
            return optuna.samplers.RandomSampler(seed)
        # by default the first 10 are drawn at random: too many of a small budget
        return optuna.samplers.TPESampler(seed=seed, n_startup_trials=min(10, max(WAVE, self.budget // 3)))

    def _drawn(self, seed: int) -> dict[str, Any]:
        """A point drawn evenly, for small spaces of which little is left."""
        draw = np.random.default_rng(seed)
        point = {}
        for dial, axis in self.axes.items():
            low, high = axis.reach if axis.whole else (0, len(axis.values) - 1)
            at = int(draw.integers(int(low), int(high) + 1))
            point[dial] = at if axis.whole else axis.values[at]
        return self._encoded(point)

    def _distributions(self) -> dict[str, BaseDistribution]:
        return {_label(dial, axis): _distribution(axis) for dial, axis in self.axes.items()}

    def _encoded(self, point: Point) -> dict[str, Any]:
        return {_label(dial, a): 1 - point[dial] if _is_reversed(a) else point[dial] for dial, a in self.axes.items()}

    def _decoded(self, params: Mapping[str, Any]) -> tuple[Any, ...]:
        values = ((axis, params[_label(dial, axis)]) for dial, axis in self.axes.items())
        return tuple(a.tidy(1 - v if _is_reversed(a) else v) if a.ordered else v for a, v in values)


def _is_reversed(axis: Axis) -> bool:
    """Whether Optuna, which knows no scale towards one, is asked for 1 - x instead."""
    return axis.scale == "towards_one"


def _label(dial: str, axis: Axis) -> str:
    return f"1 - {dial}" if _is_reversed(axis) else dial


def _distribution(axis: Axis) -> BaseDistribution:
    if not axis.ordered:
        return CategoricalDistribution(axis.values)
    low, high = axis.reach
    if axis.whole:
        return IntDistribution(int(low), int(high), log=axis.scale == "log")
    if _is_reversed(axis):
        return FloatDistribution(1 - high, 1 - low, log=True)
    return FloatDistribution(low, high, log=axis.scale == "log")


def _frozen(trial: optuna.Trial) -> FrozenTrial:
    return next(t for t in trial.study.get_trials(deepcopy=False) if t.number == trial.number)


def storage_at(url: str) -> RDBStorage:
    """Optuna's storage at a URL; it says nothing from here on."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        return RDBStorage(url)
    except ImportError as error:
        raise EquipoiseError(f"the storage {shown_url(url)} needs a package that is not there: {error}") from None
    except Exception as error:  # SQLAlchemy's and the drivers' errors have no parent of their own
        raise EquipoiseError(f"the storage {shown_url(url)} cannot be opened: {error}") from None


# what SQLite says -> what that means
_SAID = {
    "disk is full": "the disk is full; make room and give the same command again. Finished runs are kept.",
    "readonly": "it may not be written; choose another folder with --out",
    "unable to open": "it cannot be opened; choose another folder with --out",
    "locked": "another process holds it; wait for that, and give the same command again",
    "malformed": "it is damaged; remove it and give the same command again. Finished runs are kept, and found again.",
    "decode": "it is damaged; remove it and give the same command again. Finished runs are kept, and found again.",
    "not a database": "it is no database; remove it and give the same command again. Finished runs are kept.",
}


@contextmanager
def explained(storage: Path | str) -> Iterator[None]:
    """Turn the database's errors into words that say what to do."""
    try:
        yield
    except (SQLAlchemyError, StorageInternalError, sqlite3.Error, UnicodeDecodeError) as error:
        cause = error.__cause__ if isinstance(error, StorageInternalError) else error
        said = str(getattr(cause, "orig", None) or cause or error)
        meaning = next((meaning for words, meaning in _SAID.items() if words in said), f"it says: {said}")
        raise EquipoiseError(f"the database of trials, {storage}, failed: {meaning}") from error


def storage_in(path: Path) -> RDBStorage:
    """Optuna's storage in an SQLite file.

    It does not wait for the disk, which is most of its time: what a kill leaves is whole, and what a power cut loses is
    proposed again, the same, and its runs are found in the store.
    """

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, check_same_thread=False, timeout=60)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return RDBStorage("sqlite://", engine_kwargs={"creator": connect})
