"""A post-hoc method and the outputs, or the network, that it corrects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ...core import Output, Spec
from ...store import Record
from ...train import Recipe, Run

Arrays = dict[str, np.ndarray]


def posthoc_of(recipe: Recipe, trained: Record, weights: Mapping[str, torch.Tensor]) -> Any:
    """The post-hoc method of a recipe, told the facts of the training that it corrects."""
    facts = {
        "class_counts": torch.tensor(trained.class_counts),
        "num_classes": len(trained.class_counts),
        "head_weight": weights.get("head.weight"),
    }
    return Spec.parse(str(recipe.posthoc)).build("posthoc", **facts)


def corrected_outputs(posthoc: Any, valid: Arrays, test: Arrays) -> tuple[Arrays, Arrays]:
    """Stored outputs after a correction that was fitted on those of the validation data."""
    fit_posthoc(posthoc, valid)
    if len(valid["labels"]):
        valid = {**valid, "logits": posthoc(_output(valid)).numpy()}
    return valid, {**test, "logits": posthoc(_output(test)).numpy()}


def fit_posthoc(posthoc: Any, valid: Arrays) -> None:
    """Let a correction choose what it chooses on outputs of the validation data, if there are any."""
    if len(valid["labels"]):
        posthoc.fit(_output(valid), torch.from_numpy(valid["labels"]))


def change_network(posthoc: Any, run: Run) -> None:
    """Let a correction change a trained network, by its validation data."""
    valid = run.task.valid
    chunks = zip(valid.images.split(512), valid.labels.split(512), strict=True)
    posthoc.change(run.evaluated, [(run.inputs(images), labels) for images, labels in chunks if len(labels)])


def _output(arrays: Arrays) -> Output:
    return Output(torch.from_numpy(arrays["logits"]), torch.from_numpy(arrays["features"]).float())
