"""What a run of a study says of images it was never asked about: its network, and the correction where it has one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ...data import Split
from ...store import Store
from ...train import Recipe, Run, predict
from ..run.job import change_network, corrected_outputs, posthoc_of
from .subjects import Subject, network_of


@dataclass(frozen=True)
class Predictor:
    """`run` has the trained network; `logits` gives those of a split (N, C), corrected where the method corrects."""

    run: Run
    logits: Callable[[Split], Tensor]


def predictor_of(store: Store, subject: Subject, device: torch.device) -> Predictor:
    """A post-hoc method is fitted again, on the validation outputs that it was fitted on."""
    if subject.record.trained_by is None:
        run = network_of(store, subject.record, device)
        return Predictor(run, lambda split: torch.from_numpy(predict(run, split)["logits"]))
    trained, recipe = store.get(subject.record.trained_by), Recipe.from_dict(subject.record.recipe)
    run = network_of(store, trained, device)
    posthoc = posthoc_of(recipe, trained, {k: v.cpu() for k, v in run.evaluated.state_dict().items()})
    if hasattr(posthoc, "change"):
        change_network(posthoc, run)
        return Predictor(run, lambda split: torch.from_numpy(predict(run, split)["logits"]))
    valid = store.valid(trained.key)
    return Predictor(
        run, lambda split: torch.from_numpy(corrected_outputs(posthoc, valid, predict(run, split))[1]["logits"])
    )
