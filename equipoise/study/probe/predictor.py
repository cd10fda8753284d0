"""What a run of a study says of images it was never asked about: its network, and the correction where it has one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...data import Split
from ...store import Record, Store
from ...train import Recipe, Run, predict
from ..run.correction import change_network, corrected_outputs, fit_posthoc, posthoc_of
from .subjects import Subject, network_of


@dataclass(frozen=True)
class Predictor:
    """`run` has the trained network; `logits` gives those of a split (N, C), corrected where the method corrects."""

    run: Run
    logits: Callable[[Split], Tensor]


def corrected_run(store: Store, record: Record, device: torch.device) -> tuple[Run, Any]:
    """The run of a record with its network as the method leaves it, and what still corrects its outputs, or None."""
    run, posthoc = _run_and_posthoc(store, record, device)
    return run, None if hasattr(posthoc, "change") else posthoc


def fitted_run(store: Store, record: Record, device: torch.device) -> tuple[Run, Any]:
    """The same with the post-hoc method, if there is one, whatever it corrects, after it was fitted."""
    run, posthoc = _run_and_posthoc(store, record, device)
    if posthoc is not None and not hasattr(posthoc, "change"):
        fit_posthoc(posthoc, store.valid(str(record.trained_by)))
    return run, posthoc


def _run_and_posthoc(store: Store, record: Record, device: torch.device) -> tuple[Run, Any]:
    """The run of a record, its network changed where the post-hoc method changes it, and that method, or None."""
    if record.trained_by is None:
        return network_of(store, record, device), None
    trained, recipe = store.get(record.trained_by), Recipe.from_dict(record.recipe)
    run = network_of(store, trained, device)
    posthoc = posthoc_of(recipe, trained, {k: v.cpu() for k, v in run.evaluated.state_dict().items()})
    if hasattr(posthoc, "change"):
        change_network(posthoc, run)
    return run, posthoc


def predictor_of(store: Store, subject: Subject, device: torch.device) -> Predictor:
    """A post-hoc method is fitted again, on the validation outputs that it was fitted on."""
    run, posthoc = corrected_run(store, subject.record, device)
    if posthoc is None:
        return Predictor(run, lambda split: torch.from_numpy(predict(run, split)["logits"]))
    valid = store.valid(str(subject.record.trained_by))
    return Predictor(
        run, lambda split: torch.from_numpy(corrected_outputs(posthoc, valid, predict(run, split))[1]["logits"])
    )
