"""What a trained network says of images."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ..core import Output
from ..data import Split
from .loop import Run

EVALUATION_BATCH = 512


def predict(run: Run, split: Split) -> dict[str, np.ndarray]:
    """`logits` (N, C) whose softmax are probabilities, `labels` (N,), and `features` (N, d) in half precision."""
    arrays = {"labels": split.labels.cpu().numpy()}
    if outputs := list(_outputs(run, run.team.of_split(split))):
        batches = {"logits": [out.logits for out in outputs]}
        if features := [out.features.half() for out in outputs if out.features is not None]:
            batches["features"] = features
        for name, parts in batches.items():
            arrays[name] = run.team.gathered(torch.cat(parts), len(split)).cpu().numpy()
    return arrays


def predict_logits(run: Run, split: Split) -> Tensor:
    """The logits alone (N, C), left on the device: nothing here waits for it, so that a graph can capture it."""
    logits = torch.cat([out.logits for out in _outputs(run, run.team.of_split(split))])
    return run.team.gathered(logits, len(split))


@torch.no_grad()
def _outputs(run: Run, split: Split) -> Iterator[Output]:
    network = run.evaluated.eval()
    for images in split.images.split(EVALUATION_BATCH):
        with run.precision():
            out = network.output(run.inputs(images.to(run.device)))
        yield Output(run.objective.loss.link(out.logits.float()), out.features)
