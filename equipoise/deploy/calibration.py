"""Probabilities that can be trusted as such, and what becomes of them where classes come with other frequencies."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..core import checks
from ..imbalance.posthoc.temperature import fit_temperature

STEPS = 10  # the share of the prior that a method has taken out is looked for at 0, 1/10, …, 1
ABSENT = -1e4  # in place of log 0, for a class without validation images


@dataclass(frozen=True)
class Calibration:
    r"""How logits z become probabilities: softmax(z / T), fitted on `images` validation images.

    Many methods take part of the training prior :math:`\pi` out of what a network says, so that rare classes are
    predicted more often: softmax(z / T) then assumes the frequencies :math:`s \propto \pi^{1 - t}`. `removed` is that
    t: 0 after plain training, 1 after logit adjustment. With it the posterior at the training frequencies is known,

    .. math:: p(y \mid x) \propto \mathrm{softmax}(z / T)_y \; \pi_y^{t},

    and for any deployment prior q it is :math:`p(y \mid x) \, q_y / \pi_y`, renormalised.
    """

    temperature: float = 1.0
    removed: float = 0.0
    images: int = 0

    def __post_init__(self) -> None:
        checks.above("temperature", self.temperature, 0)
        checks.between("removed", self.removed, 0, 1)
        checks.whole("images", self.images)

    @classmethod
    def fit(cls, logits: Tensor, target: Tensor, class_counts: Tensor) -> Calibration:
        """The most likely T and t on validation outputs (N, C); none without validation images."""
        if not len(target):
            return cls()
        images, (logits, target) = len(target), _with_one_mistake(logits.double(), target)
        training, held_out = _log_shares(class_counts), _log_shares(torch.bincount(target, minlength=len(class_counts)))
        tried = []
        for step in range(STEPS + 1 if training.max() > training.min() else 1):
            removed = step / STEPS
            offset = held_out - (1 - removed) * training
            temperature = fit_temperature(logits, target, offset=offset)
            posterior = (logits / temperature + offset).log_softmax(1)
            tried.append((-float(posterior.gather(1, target[:, None]).mean()), removed, temperature))
        _, removed, temperature = min(tried)
        return cls(temperature, removed, images)

    def probabilities(self, logits: Tensor, class_counts: Tensor, prior: Tensor | None = None) -> Tensor:
        """logits (N, C) to probabilities: at the frequencies `prior` (C,), or at those that the method aims at."""
        scaled = logits / self.temperature
        if prior is not None:
            training = _log_shares(class_counts)
            shift = (prior / prior.sum()).double().log() - (1 - self.removed) * training
            scaled = scaled + shift.to(scaled)
        return scaled.softmax(1)


def _with_one_mistake(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """And the least certain image once more, as one of the class that comes second.

    So few images are never enough to be sure of everything: where all are right, no finite T would be the best.
    """
    best = logits.topk(2, dim=1)
    least = (best.values[:, 0] - best.values[:, 1]).argmin()
    return torch.cat((logits, logits[least, None])), torch.cat((target, best.indices[least, 1:]))


def _log_shares(counts: Tensor) -> Tensor:
    shares = counts.double() / counts.sum()
    return shares.log().clamp_min(ABSENT)
