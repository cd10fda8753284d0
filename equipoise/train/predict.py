"""What a trained network says of images."""

from __future__ import annotations

import numpy as np
import torch

from ..data import Split
from .loop import Run

EVALUATION_BATCH = 512


@torch.no_grad()
def predict(run: Run, split: Split, *, features: bool = True) -> dict[str, np.ndarray]:
    """`logits` (N, C) whose softmax are probabilities, `labels` (N,), and `features` (N, d) in half precision."""
    network = run.evaluated.eval()
    logits, penultimate = [], []
    for images in split.images.split(EVALUATION_BATCH):
        with run.precision():
            out = network.output(run.inputs(images))
        logits.append(run.objective.loss.link(out.logits.float()))
        if features and out.features is not None:
            penultimate.append(out.features.half())
    arrays = {"labels": split.labels.cpu().numpy()}
    if logits:
        arrays["logits"] = torch.cat(logits).cpu().numpy()
        if penultimate:
            arrays["features"] = torch.cat(penultimate).cpu().numpy()
    return arrays
