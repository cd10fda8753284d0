"""A run from its first epoch, or its last checkpoint, to its end."""

from __future__ import annotations

import copy
import io
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from ..core.files import CHECKPOINT, sealed, unsealed, write_whole
from .loop import Run
from .predict import predict_logits

CHECKPOINT_SHARE = 0.02  # of the time, at most: on a fast device five epochs can be shorter than a slow disk's writing

Curves = dict[str, list[float]]
Evaluate = Callable[[Tensor, Tensor], dict[str, float]]  # logits, labels -> metrics by name


class Stopped(Exception):
    """Somebody asked the run to stop; its checkpoint is written."""


class Observer(Protocol):
    """Looks at a run after each epoch, and has a state that a checkpoint keeps."""

    def after_epoch(self, epoch: int) -> None: ...

    def state_dict(self) -> Any: ...

    def load_state_dict(self, state: Any) -> None: ...


class Fitting:
    """One run's way through its epochs: its curves so far and its checkpoints in `folder`.

    The curves have one value an epoch of the training loss and of each validation metric. A run that finds its
    checkpoint goes on from there and ends with the numbers it would have had. With `until` it ends after so many epochs
    of its plan, to be taken up later. `seconds` tells where the time went, `notes` what a reader of the result should
    know.
    """

    def __init__(
        self,
        run: Run,
        evaluate: Evaluate,
        folder: Path | None = None,
        observer: Observer | None = None,
        until: int | None = None,
    ) -> None:
        self.run, self.evaluate, self.folder, self.observer, self.until = run, evaluate, folder, observer, until
        self.curves, self.notes = load_checkpoint(run, folder, observer) if folder else ({}, ())
        self.first_epoch = self.epoch
        self.seconds = {"training": 0.0, "evaluation": 0.0, "checkpoints": 0.0}
        self._saving = Saving()

    @property
    def epoch(self) -> int:
        """Epochs done."""
        return len(self.curves.get("train_loss", []))

    @property
    def epochs_here(self) -> int:
        """Epochs done since the checkpoint that the run was taken up from: those that `seconds` tells of."""
        return self.epoch - self.first_epoch

    @property
    def complete(self) -> bool:
        """Whether all epochs of its plan are done."""
        return self.epoch >= self.run.plan.epochs

    @property
    def ended(self) -> bool:
        return self.complete or (self.until is not None and self.epoch >= self.until)

    def train_epoch(self) -> None:
        """One epoch, its curves, and every few epochs a checkpoint."""
        with self.timed("training"):
            loss = self.run.epoch(self.epoch)
        with self.timed("evaluation"):
            logits = predict_logits(self.run, self.run.task.valid) if len(self.run.task.valid) else None
            self.note(loss, logits)
        self._saving.now_and_then([self])

    def note(self, loss: float, logits: Tensor | None) -> None:
        """Write down what an epoch came to: its loss, and the metrics of its logits on the validation data."""
        self.curves.setdefault("train_loss", []).append(loss)
        if logits is not None:
            for name, value in self.evaluate(logits, self.run.task.valid.labels).items():
                self.curves.setdefault(f"valid_{name}", []).append(value)
        if self.observer is not None:
            self.observer.after_epoch(self.epoch)

    def save(self) -> None:
        if self.folder is not None and self.run.team.leads:
            with self.timed("checkpoints"):
                save_checkpoint(self.run, self.folder, self.curves, self.observer)

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Add the time of the block to `seconds`."""
        began = time.monotonic()
        yield
        self.seconds[what] += time.monotonic() - began


class Saving:
    """Checkpoints of runs that are trained together: every few epochs, in a small share of the time of all of them."""

    def __init__(self) -> None:
        self._not_before = 0.0

    def now_and_then(self, fittings: Sequence[Fitting]) -> None:
        due = [f for f in fittings if not f.ended and f.epoch % f.run.team.checkpoint_epochs == 0]
        if not due or time.monotonic() < self._not_before:
            return
        began = time.monotonic()
        for fitting in due:
            fitting.save()
        ended = time.monotonic()
        self._not_before = ended + (ended - began) / CHECKPOINT_SHARE


def fit(
    run: Run, *, evaluate: Evaluate, folder: Path | None = None, stop: Callable[[], bool] = lambda: False
) -> Curves:
    """Train a run to its end and give its curves."""
    return fit_one(Fitting(run, evaluate, folder), stop=stop)


def fit_one(
    fitting: Fitting,
    *,
    on_epoch: Callable[[int, Curves], None] = lambda epoch, curves: None,
    stop: Callable[[], bool] = lambda: False,
) -> Curves:
    """Train to the end and give the curves; when `stop()` says so, write a checkpoint and raise `Stopped`."""
    while not fitting.ended:
        fitting.train_epoch()
        on_epoch(fitting.epoch, fitting.curves)
        if not fitting.ended and stop():
            fitting.save()
            raise Stopped
    return fitting.curves


def save_checkpoint(run: Run, folder: Path, curves: Curves, observer: Observer | None = None) -> None:
    buffer = io.BytesIO()
    seen = observer and observer.state_dict()
    torch.save({"run": run.state_dict(), "curves": curves, "observer": seen}, buffer)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / CHECKPOINT, sealed(buffer.getvalue()))


def load_checkpoint(run: Run, folder: Path, observer: Observer | None = None) -> tuple[Curves, tuple[str, ...]]:
    """Put `run` where its checkpoint left it, and give the curves so far, and what is to be said of it.

    Nothing there gives a fresh start. So does a damaged checkpoint, or one of before there were checksums, because
    weights that one cannot trust may not be trained on; and a whole one that is not of this run. It is thrown away.
    """
    path = folder / CHECKPOINT
    found = run.team.told(lambda: path.read_bytes() if path.exists() else None)
    if found is None:
        return {}, ()
    if (content := unsealed(found)) is not None:
        start = copy.deepcopy((run.state_dict(), observer and observer.state_dict()))
        try:
            return _take_up(run, observer, content), ()
        except (MemoryError, torch.OutOfMemoryError):  # says nothing about the file
            raise
        except Exception:  # what it holds may be anything, and PyTorch's complaints about it are of any kind
            run.load_state_dict(start[0])
            if observer is not None:
                observer.load_state_dict(start[1])
    path.unlink(missing_ok=True)  # another process may have done it
    return {}, ("Its checkpoint was damaged or of another version, so it was trained from the start.",)


def _take_up(run: Run, observer: Observer | None, content: bytes) -> Curves:
    state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    run.load_state_dict(state["run"])
    if observer is not None and state["observer"] is not None:
        observer.load_state_dict(state["observer"])
    curves: Curves = state["curves"]
    epochs = len(curves["train_loss"])
    if any(len(curve) != epochs or not all(type(v) is float for v in curve) for curve in curves.values()):
        raise ValueError("its curves are not one number an epoch")
    if int(run.done) != epochs * run.steps_per_epoch:
        raise ValueError("its steps are not those of its epochs")
    return curves
