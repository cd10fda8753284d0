"""How the sentences of a verdict are computed, in a few lines each; docs/evidence.md has the reasons."""

from __future__ import annotations

from typing import NamedTuple


class Formula(NamedTuple):
    """`name` is the heading of docs/evidence.md as a link has it."""

    name: str
    title: str
    lines: tuple[str, ...]


FORMULAS = (
    Formula(
        "the-claims",
        "The claims",
        (
            "d_s = score of the method − score of the baseline, seed by seed",
            "p = #{signs ε ∈ {−1, 1}ⁿ : |Σ ε_s d_s| ≥ |Σ d_s|} / 2ⁿ; beyond 14 pairs, 100,000 random patterns",
            "Holm: the i-th smallest of m p-values times m − i + 1, and never below an earlier one; a claim needs 5 %",
            "interval on these images: mean ± t(n − 1) · sd / √n",
        ),
    ),
    Formula(
        "tiers",
        "Tiers",
        (
            "down the ranking, a new tier begins with a method that is separably worse than one of the tier above it",
            "separable from the baseline: the claim above",
            "two others: the same test with Holm over all such pairs, and p never below the least of the claims",
        ),
    ),
    Formula(
        "these-test-images-and-new-ones",
        "These test images, and new ones",
        (
            "variance = V_S / S + V_I − V_E, with d_si the difference of seed s and image i, π_c the share of class c",
            "V_S: variance of the S differences; V_I = Σ π_c² / n_c · variance of the images' means over seeds",
            "V_E = Σ π_c² / n_c · mean square of interaction / S; Student's t with Satterthwaite's degrees of freedom",
        ),
    ),
    Formula(
        "practically-equal",
        "Practically equal",
        (
            "with the margin m: one-sided sign-flip tests of m + d and of m − d, the larger p of the two, Holm",
            "p = #{signs ε : Σ ε_s x_s ≥ Σ x_s} / 2ⁿ, rounded up to a whole number of 2 / 2ⁿ",
        ),
    ),
    Formula(
        "a-new-run-against-a-new-run",
        "A new run against a new run",
        (
            "θ = share of pairs of runs with unlike seeds in which the method scores better, ties half (Mann–Whitney)",
            "interval: (θ̂ − θ)² = z² θ(1 − θ) / (n₁n₂) · (1 + ((n₁ + n₂)/2 − 1)((1 − θ)/(2 − θ) + θ/(1 + θ)))",
        ),
    ),
    Formula(
        "seeds-in-rounds",
        "Seeds in rounds",
        ("p-values of look j are divided by its share w_j of the 5 % before Holm; the shares sum to 1",),
    ),
    Formula(
        "every-look-counts",
        "Every look counts",
        ("a later look at the same test set has 5 % less the largest chance of a false claim of each look before",),
    ),
    Formula(
        "what-a-verdict-takes-for-granted",
        "What a verdict takes for granted",
        ("too short: twice the epochs make a tenth fewer mistakes, beyond chance or while training loss still falls",),
    ),
)
