"""Do the promises of `equipoise combine` hold? Thousands of made-up sets of studies, judged by the real code.

    python benchmarks/simulate_combined.py [--studies 2000] [SECTION …]

Sections: effects, claims. Prints Markdown tables; a share has its 95 % interval (Wilson) behind it.
A data set has scores of methods × seeds. Its noise from seed to seed is drawn anew, with a factor of 7 between the
calmest and the noisiest twentieth of data sets, and so is what each method is worth on it. The unit is the standard
deviation of one paired difference on a typical data set.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy import special
from sections import print_sections
from simulate_evidence import share

from equipoise.analysis.statistics.combined import Combined, combine_scores, mean_effect, unlike_test

SPREAD = 0.6  # standard deviation of the logarithm of a data set's noise
TRUTH = 0.5  # the mean effect in the section on effects


def differences(rng: np.random.Generator, data: int, seeds: int, tau: float) -> np.ndarray:
    """Of one method and the baseline, paired by seed: (data, seeds)."""
    noise = np.exp(rng.normal(0, SPREAD, (data, 1)))
    return TRUTH + tau * rng.normal(size=(data, 1)) + noise * rng.normal(size=(data, seeds))


def weighted(y: np.ndarray, v: np.ndarray) -> tuple[float, float]:
    """What is usual in medicine: weights 1 / (v + τ²), τ² by Paule and Mandel, Hartung and Knapp's interval.

    It is never shorter than that without their factor, as is recommended for few studies.
    """
    low, high = 0.0, float(y.var(ddof=1))  # at its variance Q is at most K - 1

    def at(tau2: float) -> tuple[np.ndarray, float, float]:
        w = 1 / (v + tau2)
        mean = float((w * y).sum() / w.sum())
        return w, mean, float((w * (y - mean) ** 2).sum())

    if at(0.0)[2] <= len(y) - 1:
        high = 0.0
    for _ in range(40 if high else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle)[2] > len(y) - 1 else (low, middle)
    w, mean, q = at(high)
    half = special.stdtrit(len(y) - 1, 0.975) * math.sqrt(max(1.0, q / (len(y) - 1)) / w.sum())
    return mean - half, mean + half


def effects(studies: int) -> Iterator[str]:
    yield "| data sets | seeds | τ | interval holds the mean, half its length | the same, weighted | further one |"
    yield "|---|---|---|---|---|---|"
    rows = []
    for data, seeds, tau in [(k, n, tau) for k in (3, 5, 8, 15) for n in (3, 6) for tau in (0.0, 0.3, 1.0)]:
        rng, held, usual, foreseen, unlike = np.random.default_rng(0), 0, 0, 0, 0
        lengths: list[tuple[float, float]] = []
        estimates = []
        for _ in range(studies):
            *groups, further = differences(rng, data + 1, seeds, tau)
            y = np.array([x.mean() for x in groups])
            error = np.array([x.std(ddof=1) for x in groups]) / math.sqrt(seeds)
            found, (low, high) = mean_effect(y, error), weighted(y, error**2)
            held += found.low <= TRUTH <= found.high
            usual += low <= TRUTH <= high
            foreseen += found.next_low <= further.mean() <= found.next_high
            unlike += unlike_test(groups) <= 0.05
            lengths.append((found.high - found.low, high - low))
            estimates.append(found.tau)
        halves = np.median(lengths, axis=0) / 2
        told = f"{share(held, studies)}, {halves[0]:.2f} | {share(usual, studies)}, {halves[1]:.2f}"
        yield f"| {data} | {seeds} | {tau} | {told} | {share(foreseen, studies)} |"
        rows.append(f"| {data} | {seeds} | {tau} | {np.median(estimates):.2f} | {share(unlike, studies)} |")
    yield "\n| data sets | seeds | τ | median of its estimate | data sets called unlike (Welch) |"
    yield "|---|---|---|---|---|"
    yield from rows


def scores(
    rng: np.random.Generator, data: int, seeds: int, worth: np.ndarray, tau: float
) -> dict[str, dict[str, np.ndarray]]:
    """By data set and method; m0 is the baseline, what the others are worth varies by `tau` between data sets."""
    found = {}
    for k in range(data):
        noise = math.exp(rng.normal(0, SPREAD)) / math.sqrt(2)
        own = worth + tau * rng.normal(size=len(worth)) * (np.arange(len(worth)) > 0)
        runs = own[:, None] + rng.normal(size=seeds) + noise * rng.normal(size=(len(worth), seeds))
        found[f"d{k}"] = {f"m{i}": row for i, row in enumerate(runs)}
    return found


def judged(drawn: dict[str, dict[str, np.ndarray]]) -> Combined:
    return combine_scores(drawn, "m0", metric="score")


def claims(studies: int) -> Iterator[str]:
    yield "| methods | data sets | seeds | τ | any false claim | any false pair (Wilcoxon) | false “against” | power |"
    yield "|---|---|---|---|---|---|---|---|"
    for methods in (2, 5):
        for data, seeds, tau in [(3, 6, 0.0), (5, 3, 0.3), (5, 6, 0.3), (8, 6, 0.0), (8, 6, 1.0), (15, 6, 1.0)]:
            rng, false, pairs, against, power = np.random.default_rng(0), 0, 0, 0, 0
            better = np.where(np.arange(methods) > (methods - 1) // 2, 1.0, 0.0)
            for _ in range(studies):
                found = judged(scores(rng, data, seeds, np.zeros(methods), tau))
                false += any(m.standing in ("better", "worse") for m in found.methods)
                pairs += any(p.p_holm <= 0.05 for p in found.pairs)
                against += any(m.against for m in found.methods)
                found = judged(scores(rng, data, seeds, better, tau))
                power += sum(m.standing == "better" and better[int(m.name[1:])] > 0 for m in found.methods)
            wrong = share(against, studies) if tau == 0 else "–"  # with τ > 0 data sets do differ
            told = f"{share(false, studies)} | {share(pairs, studies)} | {wrong}"
            yield f"| {methods} | {data} | {seeds} | {tau} | {told} | {100 * power / studies / better.sum():.0f} % |"


SECTIONS = {"effects": effects, "claims": claims}


if __name__ == "__main__":
    print_sections(SECTIONS, __doc__)
