"""Every combination of corrections, fitted and scored on the half to choose on.

Their order is that of the data: example weighing changes the network, tau-normalization or logit adjustment (one of
them: both take the same imbalance out) change what it prefers, and temperature, last, how sure it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..analysis import METRICS
from ..core import Output
from ..imbalance import LogitAdjust, fit_bias_corrected, fit_temperature
from .affine import Affine
from .judged import metrics, score
from .outputs import Outputs

TAUS = tuple(i / 10 for i in range(1, 21))


@dataclass(frozen=True)
class Step:
    """One correction and the setting that was found for it, such as "τ = 1.2"."""

    name: str
    setting: str

    def __str__(self) -> str:
        return f"{self.name} ({self.setting})"


@dataclass(frozen=True)
class Candidate:
    """Corrections one after the other: `alpha` in the network, the rest as one correction of its logits.

    `scores` are its metrics on the half that was chosen on.
    """

    steps: tuple[Step, ...]
    alpha: float | None
    correction: Affine
    scores: dict[str, float]

    @property
    def name(self) -> str:
        return " + ".join(step.name for step in self.steps) or "as it is"

    def gain(self, metric: str) -> float:
        """The metric, turned so that more is better; see `gain`."""
        return gain(metric, self.scores[metric])


def gain(metric: str, value: float) -> float:
    """A metric turned so that more is better, without what is rounding, or less than a thousandth of a nat."""
    return round(value, 10) if METRICS[metric].higher_is_better else round(-value, 3)


@dataclass(frozen=True)
class Weighed:
    """What the network says of the half to choose on, as it is (alpha None) or with example weighing."""

    alpha: float | None
    out: Outputs


@dataclass(frozen=True)
class Aim:
    """What corrections are chosen for.

    `prior` (C,) are the class shares that the metric is about, and `weights` (N,) how much each sample of the half
    counts. `class_counts` (C,) are the training images of each class, if they are known.
    """

    metric: str
    prior: Tensor
    weights: Tensor
    class_counts: Tensor | None


def candidates(variants: list[Weighed], aim: Aim, head: nn.Linear | None) -> list[Candidate]:
    """Every combination; the first is the network as it is."""
    return [candidate for variant in variants for candidate in _of_variant(variant, aim, head)]


def best(tried: list[Candidate], metric: str) -> Candidate | None:
    """The best that is better than the network as it is; of equals the most likely, then the one of fewest steps.

    So temperature, which changes no prediction, joins whatever is chosen for accuracy where it makes the data more
    likely, and is never chosen for accuracy alone.
    """
    better = [candidate for candidate in tried if candidate.gain(metric) > tried[0].gain(metric)]
    return max(better, key=lambda c: (c.gain(metric), c.gain("nll"), -len(c.steps)), default=None)


def _of_variant(variant: Weighed, aim: Aim, head: nn.Linear | None) -> Iterator[Candidate]:
    logits, labels = variant.out.logits, variant.out.labels
    first = () if variant.alpha is None else (Step("example weighing", f"α = {variant.alpha:.3g}"),)
    unchanged: tuple[tuple[Step, ...], Affine] = ((), Affine.none(logits.shape[1]))
    for second, preference in [unchanged, *_preferences(variant.out, aim, head)]:
        z = preference(logits)
        for third, sureness in [unchanged, _temperature(z, labels, aim.weights)]:
            whole = preference.then(sureness)
            yield Candidate(
                (*first, *second, *third), variant.alpha, whole, metrics(whole(logits), labels, aim.weights)
            )


def _preferences(out: Outputs, aim: Aim, head: nn.Linear | None) -> Iterator[tuple[tuple[Step, ...], Affine]]:
    if head is not None:
        tau, correction = _best_tau(lambda tau: tau_normalization(head, tau), out, aim)
        yield (Step("tau-norm", f"τ = {tau:.3g}"),), correction
    if aim.class_counts is not None:
        counts = aim.class_counts
        tau, correction = _best_tau(lambda tau: logit_shift(counts, aim.prior, tau), out, aim)
        yield (Step("logit adjustment", f"τ = {tau:.3g}"),), correction
    else:
        scale, bias = fit_bias_corrected(out.logits, out.labels)
        fitted = Affine(torch.full_like(bias, scale), bias)  # right for the shares of this half
        counts = torch.bincount(out.labels, minlength=len(bias)).clamp_min(1)
        yield (Step("logit adjustment", "biases fitted"),), fitted.then(logit_shift(counts, aim.prior, 1.0))


def tau_normalization(head: nn.Linear, tau: float) -> Affine:
    """What `equipoise.imbalance.TauNorm` does, on logits: z_c = w_c · x + b_c becomes w_c · x / ||w_c||^tau."""
    norm = torch.linalg.vector_norm(head.weight.detach().double().cpu(), dim=1)
    scale = norm.where(norm > 0, 1.0) ** -tau
    bias = torch.zeros_like(scale) if head.bias is None else head.bias.detach().double().cpu()
    return Affine(scale, -bias * scale)


def logit_shift(class_counts: Tensor, prior: Tensor, tau: float) -> Affine:
    """What `equipoise.imbalance.LogitAdjust` adds to logits to get from training shares to `prior`."""
    nothing = Affine.none(len(prior))
    shift = LogitAdjust(class_counts, tau, tuple(prior.tolist()))(Output(nothing.offset[None]))[0]
    return Affine(nothing.scale, shift - shift.mean())


def _best_tau(correction: Callable[[float], Affine], out: Outputs, aim: Aim) -> tuple[float, Affine]:
    """The tau of 0.1, …, 2 with the best metric, of equals the smallest, and its correction."""
    gains = {
        tau: gain(aim.metric, score(aim.metric, correction(tau)(out.logits), out.labels, aim.weights)) for tau in TAUS
    }
    tau = max(TAUS, key=lambda tau: (gains[tau], -tau))
    return tau, correction(tau)


def _temperature(logits: Tensor, labels: Tensor, weights: Tensor) -> tuple[tuple[Step, ...], Affine]:
    temperature = fit_temperature(logits, labels, weights)
    scale = torch.full((logits.shape[1],), 1 / temperature, dtype=torch.float64)
    return (Step("temperature", f"T = {temperature:.3g}"),), Affine(scale, torch.zeros_like(scale))
