"""`Classifier`: from images to corrected logits, everything inside. It is made from a description and weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..core import EquipoiseError, Output, Spec
from ..data import normalize
from ..data.place import PLACES
from ..train import Recipe, untrained_network
from .description import Description


class Classifier(nn.Module):
    """uint8 images (N, c, h, w) to logits (N, C) whose softmax are probabilities, corrected where the method corrects.

    In single precision, also where training was in bf16.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, description: Description, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        recipe = Recipe.from_dict(description.recipe)
        counts = torch.tensor(description.class_counts)
        channels = description.preprocessing.channels
        facts = {"class_counts": counts, "num_classes": len(counts), "in_channels": channels}
        with torch.random.fork_rng(devices=[]):  # the weights that are drawn here are replaced at once
            self.network = untrained_network(recipe, facts)
        self.loss: Any = Spec.parse(recipe.loss).build("loss", **facts)
        facts["head_weight"] = weights.get("head.weight")
        self.posthoc = restored_posthoc(recipe.posthoc, description.fitted, facts)
        if hasattr(self.posthoc, "change"):
            self.posthoc.change(self.network, [])
            self.posthoc = None  # what it does is done
        self.network.load_state_dict(dict(weights))
        self.register_buffer("mean", torch.tensor(description.preprocessing.mean))
        self.register_buffer("std", torch.tensor(description.preprocessing.std))
        self.eval().requires_grad_(False)

    def forward(self, images: Tensor) -> Tensor:
        features = self.network.features(normalize(images, self.mean, self.std))
        logits = self.loss.link(self.network.head(features).float())
        return logits if self.posthoc is None else self.posthoc(Output(logits, features))


def all_weights(network: nn.Module) -> dict[str, Tensor]:
    """The weights on the CPU, with those of a frozen body, which `state_dict` of such a network leaves out."""
    state = nn.Module.state_dict(network)
    return {name: value.detach().cpu().contiguous() for name, value in state.items()}


def portable_recipe(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe without the places of data and weights: the names of folders and files remain."""
    task, plan = dict(recipe["task"]), dict(recipe["plan"])
    spec = Spec.parse(task["name"])
    params = tuple((k, Path(v).name if k in PLACES and isinstance(v, str) else v) for k, v in spec.params)
    task["name"] = str(Spec(spec.name, params))
    if plan.get("weights") is not None:
        plan["weights"] = Path(plan["weights"]).name
    return {**recipe, "task": task, "plan": plan}


def fitted_values(posthoc: Any) -> dict[str, float]:
    """What a correction chose on validation data: by convention its attributes whose names end in an underscore."""
    chosen = {k: v for k, v in vars(posthoc).items() if k.endswith("_") and not k.startswith("_")}
    for name, value in chosen.items():
        if not isinstance(value, int | float):
            raise EquipoiseError(
                f"{posthoc!r} keeps {name} as {type(value).__name__}, and a model can keep numbers alone; it cannot be "
                "taken out of the study"
            )
    return {name: float(value) for name, value in chosen.items()}


def restored_posthoc(text: str | None, fitted: Mapping[str, float], facts: Mapping[str, Any]) -> Any:
    """The correction of a recipe with what it chose; None where there is none."""
    if text is None:
        return None
    posthoc = Spec.parse(text).build("posthoc", **facts)
    for name, value in fitted.items():
        setattr(posthoc, name, value)
    return posthoc
