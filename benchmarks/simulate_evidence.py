"""Does the error rate hold, and is the planner's promise kept? Thousands of made-up studies, judged by the real code.

    python benchmarks/simulate_evidence.py [--studies 2000] [SECTION …]

Sections: fixed, rounds, some, power. Prints Markdown tables; a share has its 95 % interval (Wilson) behind it.
A study is scores of methods × seeds: what a seed does to all methods, and what it does to each, both drawn anew.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from equipoise.analysis import compare
from equipoise.analysis.statistics import tests as statistics
from equipoise.analysis.statistics.looks import plan_looks
from equipoise.analysis.statistics.power import claim_power
from equipoise.analysis.statistics.sequential import Rounds, judge
from equipoise.analysis.statistics.verdict import Verdict

statistics.RANDOM_FLIPS = (
    4_999  # random patterns beyond 14 pairs: the test is valid with any number, and this is faster
)

Noise = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
NOISES: dict[str, Noise] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy tails (t, 3 df)": lambda rng, shape: rng.standard_t(3, size=shape),
    "unequal spreads": lambda rng, shape: rng.normal(size=shape) * np.arange(1, shape[0] + 1)[:, None],
    "accuracy on 90 images": lambda rng, shape: rng.binomial(90, 0.7, size=shape) / 90,
}


def draw(rng: np.random.Generator, noise: Noise, effects: np.ndarray, n_seeds: int) -> np.ndarray:
    """Scores (methods, seeds): one method's noise, times the effect in standard deviations of a difference."""
    own = noise(rng, (len(effects), n_seeds))
    return rng.normal(size=n_seeds) + own + math.sqrt(2) * effects[:, None]


def named(scores: np.ndarray, n_seeds: int) -> dict[str, np.ndarray]:
    return {f"m{i}": row[:n_seeds] for i, row in enumerate(scores)}


def in_rounds(valid: np.ndarray, test: np.ndarray, rounds: Rounds, impatient: bool = False) -> tuple[Verdict, int]:
    """A study until it is decided: rounds judged on `valid`, claims made on `test`; and the runs it took.

    The impatient one looks at the claims themselves after each round, and ends as soon as there is one.
    """
    runs = before = 0
    for n in rounds.looks.seeds:
        going = rounds.found[-1].kept if rounds.found else tuple(named(valid, 1))
        runs, before = runs + (n - before) * len(going), n
        rounds = replace(rounds, found=(*rounds.found, judge(named(valid, n), "m0", rounds, higher_is_better=True)))
        verdict = compare(named(test, n), "m0", metric="score", looks=rounds.looks, taken=rounds.taken)
        if not rounds.found[-1].open or (impatient and claims(verdict)):
            break
    return verdict, runs


def claims(verdict: Verdict) -> dict[str, str]:
    return {m.name: m.standing for m in verdict.methods if m.standing in ("better", "worse")}


def splits(verdict: Verdict) -> bool:
    return any(m.tier not in (None, 1) for m in verdict.methods)


def boundaries(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """Each method that is not in tier 1, and the best of the tier above; pairs with the baseline are claims instead."""
    best: dict[int, str] = {}
    for m in verdict.methods:
        best.setdefault(m.tier or 0, m.name)
    pairs = ((m.name, best[m.tier - 1]) for m in verdict.methods if m.tier and m.tier > 1)
    yield from (pair for pair in pairs if verdict.baseline not in pair)


def share(count: int, total: int) -> str:
    """`3.1 % (2.4 to 3.9)`: Wilson's 95 % interval."""
    p, z = count / total, 1.959964
    centre, half = p + z * z / (2 * total), z * math.sqrt(p * (1 - p) / total + z * z / (4 * total * total))
    low, high = ((centre + s * half) / (1 + z * z / total) for s in (-1, 1))
    return f"{100 * p:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def fixed(studies: int) -> Iterator[str]:
    yield "| methods | seeds | noise | any claim | any claim or second tier |\n|---|---|---|---|---|"
    for methods, n in ((2, 6), (4, 8), (8, 10), (8, 16)):
        for name, noise in NOISES.items():
            rng, claimed, split = np.random.default_rng(0), 0, 0
            for _ in range(studies):
                verdict = compare(named(draw(rng, noise, np.zeros(methods), n), n), "m0", metric="score")
                claimed += bool(claims(verdict))
                split += bool(claims(verdict)) or splits(verdict)
            yield f"| {methods} | {n} | {name} | {share(claimed, studies)} | {share(split, studies)} |"


def rounds_(studies: int) -> Iterator[str]:
    yield "| methods | looks after | rounds judged on | any claim | any claim or second tier | runs (fixed) |"
    yield "|---|---|---|---|---|---|"
    for methods, most in ((2, 24), (4, 28), (8, 36)):
        plan = Rounds(0.05, plan_looks(most, methods - 1), tuple(range(most)))
        for how in ("validation data", "the test set (--peek)", "the claims (ends at the first)"):
            rng, claimed, split, runs = np.random.default_rng(0), 0, 0, 0
            for _ in range(studies):
                test = draw(rng, NOISES["normal"], np.zeros(methods), most)
                valid = test + 2 * rng.normal(size=test.shape) if how == "validation data" else test
                verdict, took = in_rounds(valid, test, plan, impatient=how.startswith("the claims"))
                claimed += bool(claims(verdict))
                split += bool(claims(verdict)) or splits(verdict)
                runs += took
            looks = ", ".join(map(str, plan.looks.seeds))
            taken = f"{runs / studies:.0f} ({methods * most})"
            yield f"| {methods} | {looks} | {how} | {share(claimed, studies)} | {share(split, studies)} | {taken} |"


def some(studies: int) -> Iterator[str]:
    """Half of the methods are better, by as much: what is said of the others, and between equals."""
    yield "| methods | better | design | false claim | false boundary | better ones claimed | runs |"
    yield "|---|---|---|---|---|---|---|"
    for methods, most, n, effect in ((4, 28, 10, 1.0), (4, 28, 10, 2.0), (8, 36, 12, 1.0), (8, 36, 12, 2.0)):
        effects = np.where(np.arange(methods) >= methods // 2, effect, 0.0)
        plan = Rounds(0.05, plan_looks(most, methods - 1), tuple(range(most)))
        for how in (f"fixed, {n} seeds", "rounds, validation", "rounds, --peek"):
            rng, false, boundary, power, runs = np.random.default_rng(0), 0, 0, 0, 0
            for _ in range(studies):
                test = draw(rng, NOISES["normal"], effects, most)
                valid = test if "peek" in how else test + 2 * rng.normal(size=test.shape)
                if "fixed" in how:
                    verdict, took = compare(named(test, n), "m0", metric="score"), methods * n
                else:
                    verdict, took = in_rounds(valid, test, plan)
                said = claims(verdict)
                better = [f"m{i}" for i in range(methods) if effects[i]]
                false += any(name not in better or standing == "worse" for name, standing in said.items())
                boundary += any(effects[int(a[1:])] >= effects[int(b[1:])] for a, b in boundaries(verdict))
                power += sum(said.get(name) == "better" for name in better)
                runs += took
            found = f"{100 * power / studies / sum(effects > 0):.0f} %"
            yield (
                f"| {methods} | {sum(effects > 0)} by {effect} sd | {how} | {share(false, studies)} | "
                f"{share(boundary, studies)} | {found} | {runs / studies:.0f} |"
            )


def power(studies: int) -> Iterator[str]:
    yield "| methods | seeds | true difference | promised | counted | apart |\n|---|---|---|---|---|---|"
    worst = 0.0
    for methods, n in ((2, 6), (2, 8), (2, 12), (4, 7), (4, 8), (4, 12), (8, 9), (8, 10), (8, 12), (8, 20), (21, 12)):
        for effect in (0.75, 1.25, 2.0):
            rng, found = np.random.default_rng(0), 0
            effects = np.where(np.arange(methods) == 1, effect, 0.0)
            for _ in range(studies):
                verdict = compare(named(draw(rng, NOISES["normal"], effects, n), n), "m0", metric="score")
                found += claims(verdict).get("m1") == "better"
            promised = claim_power(n, effect, 0.05, methods - 1)
            worst = max(worst, abs(promised - found / studies))
            apart = f"{100 * (found / studies - promised):+.1f}"
            yield f"| {methods} | {n} | {effect} sd | {100 * promised:.0f} % | {share(found, studies)} | {apart} |"
    yield f"\nLargest distance from the promise: {100 * worst:.1f} points."


SECTIONS = {"fixed": fixed, "rounds": rounds_, "some": some, "power": power}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", choices=[[], *SECTIONS], metavar="SECTION")
    parser.add_argument("--studies", type=int, default=2000)
    arguments = parser.parse_args()
    for name in arguments.sections or SECTIONS:
        print(f"\n## {name}, {arguments.studies} studies a row\n")
        for line in SECTIONS[name](arguments.studies):
            print(line, flush=True)


if __name__ == "__main__":
    main()
