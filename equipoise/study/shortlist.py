"""Which methods are worth trying on a data set, and why: a few, because every one more costs seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

UNEVEN = 1.5  # largest class over smallest, from which on methods for imbalance are worth trying
STEEP = 10.0  # from which on the stronger ones are
COSINE = {"head": "cosine(tau=0.05)"}


@dataclass(frozen=True)
class Candidate:
    """A method for a study: its options, and why it is on the list."""

    name: str
    why: str
    options: Mapping[str, Any] = field(default_factory=dict)


def shortlist(class_counts: Sequence[int], frozen: bool) -> list[Candidate]:
    """What to compare on training images of these classes; the first is the baseline, and where there is little time
    the last are left out.

    Args:
        class_counts: training images of each class.
        frozen: whether only the head is trained, on the features of a trained network; otherwise the whole network is.

    >>> [candidate.name for candidate in shortlist([50, 50, 48], frozen=True)]
    ['plain', 'cosine softmax']
    >>> len(shortlist([500, 50, 5], frozen=True))
    8
    """
    plain = Candidate("plain", "cross-entropy: what everything else must beat")
    ratio = max(class_counts) / max(1, min(class_counts))
    if ratio < UNEVEN:
        return [plain, *_for_even_classes(frozen)]
    costless, *trained = _for_uneven_classes(max(class_counts))
    if frozen or ratio >= STEEP:
        trained.insert(0, _balanced_cosine())
    if ratio >= STEEP:
        margins = _margins(beta_for(max(class_counts)))
        trained = [*trained[:1], margins, *trained[1:], _even_norms()] if frozen else [*trained, margins]
    return [plain, costless, *trained]


def _for_even_classes(frozen: bool) -> list[Candidate]:
    """A head on a trained network gains nothing by label smoothing: docs/results/frozen_network.md."""
    cosine = Candidate("cosine softmax", "directions of features instead of their lengths", COSINE)
    if frozen:
        return [cosine]
    smoothing = "the classes are about even; this often helps a little"
    return [Candidate("label smoothing", smoothing, _loss("label_smoothing")), cosine]


def _for_uneven_classes(largest: int) -> list[Candidate]:
    beta = beta_for(largest)
    return [
        Candidate(
            "logit adjustment",
            "takes the class sizes out of plain's answers afterwards; costs no training",
            {"posthoc": "logit_adjust(tau=None)"},
        ),
        Candidate("balanced softmax", "takes the class sizes into account while training", _loss("balanced_softmax")),
        Candidate(
            "class-balanced",
            f"images of rare classes count more; beta {beta} for {largest:,} images in the largest class",
            {"weighting": f"effective_number(beta={beta})"},
        ),
        Candidate("oversampling", "shows every class equally often", {"sampler": "class_balanced"}),
    ]


def _balanced_cosine() -> Candidate:
    """What a short training keeps of `equipoise_rare_classes` (docs/results/combination.md), and the best of those
    tried on a trained network (docs/results/frozen_network.md)."""
    return Candidate(
        "balanced cosine softmax",
        "takes the class sizes into account while training, and goes by directions of features, not their lengths",
        {**_loss("balanced_softmax"), **COSINE},
    )


def _margins(beta: float) -> Candidate:
    """Among the best of heads on a trained network: docs/results/frozen_network.md."""
    deferred = f"effective_number(beta={beta}, start=0.8, normalize='batch')"
    return Candidate(
        "LDAM-DRW", "wider margins for rare classes, weights late in training", {**_loss("ldam"), "weighting": deferred}
    )


def _even_norms() -> Candidate:
    return Candidate("tau-norm", "evens out the head's weights afterwards", {"posthoc": "tau_norm"})


def _loss(name: str) -> dict[str, str]:
    return {"loss": name}


def beta_for(largest: int) -> float:
    """The β of the effective number for classes of up to so many images: 1 - 1/N with N the next power of ten below.

    >>> [beta_for(n) for n in (8, 60, 5000, 10**6)]
    [0.9, 0.9, 0.999, 0.9999]
    """
    return {1: 0.9, 2: 0.99, 3: 0.999}.get(max(1, len(str(largest)) - 1), 0.9999)
