"""A run from its first epoch, or its last checkpoint, to its end."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from ..files import write_whole
from .loop import Run
from .predict import predict

CHECKPOINT_EPOCHS = 5
CHECKPOINT_SHARE = 0.02  # of the time, at most: on a fast device five epochs can be shorter than a slow disk's writing

Curves = dict[str, list[float]]
Evaluate = Callable[[np.ndarray, np.ndarray], dict[str, float]]  # logits, labels -> metrics by name


class Stopped(Exception):
    """Somebody asked the run to stop; its checkpoint is written."""


class Fitting:
    """One run's way through its epochs: its curves so far and its checkpoints in `folder`.

    The curves have one value an epoch of the training loss and of each validation metric. A run that finds its
    checkpoint goes on from there and ends with the numbers it would have had.
    """

    def __init__(self, run: Run, evaluate: Evaluate, folder: Path | None = None) -> None:
        self.run, self.evaluate, self.folder = run, evaluate, folder
        self.curves: Curves = load_checkpoint(run, folder) if folder else {}
        self._next_save = 0.0

    @property
    def epoch(self) -> int:
        """Epochs done."""
        return len(self.curves.get("train_loss", []))

    @property
    def ended(self) -> bool:
        return self.epoch >= self.run.plan.epochs

    def after_epoch(self, loss: float) -> None:
        """Note what the epoch came to, and write a checkpoint every few epochs."""
        self.curves.setdefault("train_loss", []).append(loss)
        if len(self.run.task.valid):
            valid = predict(self.run, self.run.task.valid, features=False)
            for name, value in self.evaluate(valid["logits"], valid["labels"]).items():
                self.curves.setdefault(f"valid_{name}", []).append(value)
        if not self.ended and self.epoch % CHECKPOINT_EPOCHS == 0 and time.monotonic() >= self._next_save:
            self.save()

    def save(self) -> None:
        if self.folder is not None:
            began = time.monotonic()
            save_checkpoint(self.run, self.folder, self.curves)
            ended = time.monotonic()
            self._next_save = ended + (ended - began) / CHECKPOINT_SHARE


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
        fitting.after_epoch(fitting.run.epoch(fitting.epoch))
        on_epoch(fitting.epoch, fitting.curves)
        if not fitting.ended and stop():
            fitting.save()
            raise Stopped
    return fitting.curves


def save_checkpoint(run: Run, folder: Path, curves: Curves) -> None:
    buffer = io.BytesIO()
    torch.save({"run": run.state_dict(), "curves": curves}, buffer)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "checkpoint.pt", buffer.getvalue())


def load_checkpoint(run: Run, folder: Path) -> Curves:
    """Put `run` where its checkpoint left it, and give the curves so far; nothing there gives a fresh start."""
    path = folder / "checkpoint.pt"
    if not path.exists():
        return {}
    state = torch.load(path, map_location="cpu", weights_only=True)
    run.load_state_dict(state["run"])
    curves: Curves = state["curves"]
    return curves
