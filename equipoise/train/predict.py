"""What a trained network says of images."""

from __future__ import annotations

import numpy as np
import torch

from ..data import Split, normalize
from .loop import Run

EVALUATION_BATCH = 512


@torch.no_grad()
def predict(run: Run, split: Split, *, features: bool = True) -> dict[str, np.ndarray]:
    """`logits` (N, C) whose softmax are probabilities, `labels` (N,), and `features` (N, d) in half precision."""
    network = run.evaluated.eval()
    logits, penultimate = [], []
    for images in split.images.split(EVALUATION_BATCH):
        inputs = normalize(images, run.mean, run.std).contiguous(memory_format=torch.channels_last)
        with run.precision():
            out = network.output(inputs)
        logits.append(run.objective.loss.link(out.logits.float()))
        penultimate.append(out.features.half())
    arrays = {"labels": split.labels.cpu().numpy()}
    if logits:
        arrays["logits"] = torch.cat(logits).cpu().numpy()
        if features:
            arrays["features"] = torch.cat(penultimate).cpu().numpy()
    return arrays
