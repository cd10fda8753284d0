"""What `train = "head"` cannot do: a head is trained on the features of a network that stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ..core import Output, Spec
from ..models import is_pretrained

# dial -> why only its default will do
_ELSEWHERE = {
    "norm": "acts in the body, which keeps its own",
    "mix": "acts on images or inside the body",
    "augment": "acts on images, and each is looked at once",
    "procedure": "trains the body",
    "stage": "continues from a body that was trained",
}


def unfit_for_head(
    dials: Mapping[str, Any], defaults: Mapping[str, Any], weights: str | None, facts: Mapping[str, Any]
) -> list[str]:
    """A sentence for each choice of a recipe that needs more than the head; `facts` are enough to try a method out."""
    mistakes = [
        f'train = "head" goes without {dial} = "{dials[dial]}", which {why}: leave it out, or write train = "all"'
        for dial, why in _ELSEWHERE.items()
        if dials[dial] != defaults[dial]
    ]
    if weights is None and not is_pretrained(dials["model"]):
        mistakes.append(
            f'train = "head" needs a network that was trained, and {dials["model"]} starts at random: write model = '
            '"efficientnet_lite0(pretrained=True)", or weights = "FILE"'
        )
    if dials["weighting"] and _reads_maps(Spec.parse(dials["weighting"]).build("weighting", **facts)):
        mistakes.append(f'train = "head" has no feature maps, which {dials["weighting"]} reads: write train = "all"')
    if dials["posthoc"] and hasattr(Spec.parse(dials["posthoc"]).build("posthoc", **facts), "change"):
        mistakes.append(
            f'train = "head" leaves the body as it is, and {dials["posthoc"]} would change it: leave it out'
        )
    return mistakes


def _reads_maps(weighting: Any) -> bool:
    """Whether features alone are not enough for it."""
    try:
        weighting.weights(torch.tensor([0, 1]), Output(torch.zeros(2, 2), torch.zeros(2, 4)))
    except ValueError:
        return True
    return False
