"""A run from its first epoch, or its last checkpoint, to its end."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from ..files import write_whole
from .loop import Run
from .predict import predict

CHECKPOINT_EPOCHS = 5

Curves = dict[str, list[float]]
Evaluate = Callable[[np.ndarray, np.ndarray], dict[str, float]]  # logits, labels -> metrics by name


class Stopped(Exception):
    """Somebody asked the run to stop; its checkpoint is written."""


def fit(
    run: Run,
    *,
    evaluate: Evaluate,
    folder: Path | None = None,
    on_epoch: Callable[[int, Curves], None] = lambda epoch, curves: None,
    stop: Callable[[], bool] = lambda: False,
) -> Curves:
    """Train to the end and give the curves: one value an epoch of the training loss and of each validation metric.

    With a `folder`, a checkpoint is written every few epochs and when `stop()` says so; a run found there goes on
    from its checkpoint and ends with the numbers it would have had.
    """
    curves = load_checkpoint(run, folder) if folder else {}
    first = len(curves.get("train_loss", []))
    for epoch in range(first, run.plan.epochs):
        curves.setdefault("train_loss", []).append(run.epoch(epoch))
        if len(run.task.valid):
            valid = predict(run, run.task.valid, features=False)
            for name, value in evaluate(valid["logits"], valid["labels"]).items():
                curves.setdefault(f"valid_{name}", []).append(value)
        on_epoch(epoch + 1, curves)
        ends, stopping = epoch + 1 == run.plan.epochs, stop()
        if folder and not ends and (stopping or (epoch + 1) % CHECKPOINT_EPOCHS == 0):
            save_checkpoint(run, folder, curves)
        if stopping and not ends:
            raise Stopped
    return curves


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
