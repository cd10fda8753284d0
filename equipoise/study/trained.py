"""The network of a run of a study, ready for images."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..core import EquipoiseError
from ..data import normalize
from ..store import Store
from ..train import Run
from .probe.predictor import corrected_run


class TrainedNetwork(nn.Module):
    """Logits of images as a task holds them, uint8 of shape (N, c, h, w), on whatever device they are.

    `network` is the bare one, which takes images normalized by `mean` and `std` of the training images.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.network = run.evaluated
        self.register_buffer("mean", run.mean)
        self.register_buffer("std", run.std)
        self.eval()

    def forward(self, images: Tensor) -> Tensor:
        return self.network(normalize(images.to(self.mean.device), self.mean, self.std))


def trained_network(store: Store, key: str, device: torch.device) -> TrainedNetwork:
    """The network of a finished run, in evaluation mode; a correction of outputs has none of its own."""
    record = store.get(key)
    run, posthoc = corrected_run(store, record, device)
    if posthoc is not None:
        raise EquipoiseError(
            f"{record.recipe['posthoc']} corrects the outputs of a network and leaves the network as it is: ask for "
            "the method it builds on, or for this one's predictions"
        )
    return TrainedNetwork(run)
