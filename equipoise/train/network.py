"""The network of a recipe, to be given the weights of a finished run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core import Spec
from ..models import FrozenBody, Network, create_model
from ..models.create import head_factory, unpretrained
from .recipe import Recipe


def untrained_network(recipe: Recipe, facts: Mapping[str, Any]) -> Network:
    """The network that a run of `recipe` ends with, its weights standing for nothing; no file of weights is read.

    `facts` has the class counts, and the numbers of classes and channels.
    """
    network = _as_made(recipe, facts["num_classes"], facts["in_channels"])
    if recipe.procedure is not None:
        network = Spec.parse(recipe.procedure).build("procedure", **facts).adapt(network, head_factory(recipe.head))
    if recipe.stage is not None:
        Spec.parse(recipe.stage).build("stage").prepare(network)
    return network


def _as_made(recipe: Recipe, classes: int, channels: int) -> Network:
    model = unpretrained(recipe.model)
    if recipe.plan.train == "head":
        return FrozenBody(create_model(model, 2, in_channels=channels), classes, head_factory(recipe.head))
    return create_model(model, classes, norm=recipe.norm, head=recipe.head, in_channels=channels)
