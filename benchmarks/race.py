"""Does a race find what an exhaustive search finds, in half the runs? Two methods on digits, both ways.

    python benchmarks/race.py [--out FOLDER] [--trials 10] [--seeds 6]
    python benchmarks/race.py --simulate
    python benchmarks/race.py --replay FOLDER [--seeds 6]

Both searches use one folder, so a run that both need is done once; what a race would have cost is counted. Prints a
Markdown table. A choice is judged by its mean validation score over all seeds, which the exhaustive search has as well.
With --simulate, made-up scores of 12 trials × 6 seeds are raced instead, 500 times for each amount of noise. With
--replay, the curves that an exhaustive search has left in a folder are raced, 100 times with so many of its seeds in
another order; runs are taken as whole.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

from equipoise.store import Store
from equipoise.study import How, Listener, Study, tune_study
from equipoise.study.tune.outcome import MethodOutcome, Outcome
from equipoise.study.tune.race import Racer, hopeless, who_goes_on
from equipoise.study.tune.racing import HALF_A_POINT
from equipoise.train import Recipe

SPACE = {"lr": [0.003, 0.01, 0.03, 0.1, 0.3], "weight_decay": [5e-4, 5e-3]}
STUDY = {
    "name": "race",
    "question": "Does a race find what an exhaustive search finds?",
    "baseline": "plain",
    "metric": "balanced_accuracy",
    "task": {"name": "digits", "imbalance": "long_tailed", "ratio": 5, "valid": 0.3},
    "base": {"model": "cnn_small(width=8)", "epochs": 8, "batch_size": 16},
    "methods": {"plain": {}, "adjusted": {"posthoc": "logit_adjust(tau=1.0)"}},  # they share trainings
}


def searched(study: Study, store: Store, race: bool) -> Outcome:
    study = replace(study, tuning=replace(study.tuning, race=race))
    return tune_study(study, store, How.on("cpu", None), Listener())


def runs_of(method: MethodOutcome) -> int:
    """A trial of which a run failed counts with all its runs: failures are not what is measured."""
    return sum(len(trial.score.by_seed) for trial in method.trials)


def row(whole: MethodOutcome, raced: MethodOutcome) -> str:
    assert whole.best and raced.best
    best, chosen = (100 * (trial.score.value or 0.0) for trial in (whole.best, raced.best))
    runs = f"{runs_of(whole)} | {runs_of(raced)} | {100 * runs_of(raced) / runs_of(whole):.0f} %"
    return f"| {whole.name} | {runs} | {best:.1f} | {chosen:.1f} | {best - chosen:.1f} |"


def drawn(rng: np.random.Generator, noise: float, trials: int = 12, seeds: int = 6) -> np.ndarray:
    """A grid around an optimum: trials lose up to 15 points, seeds move all of them, and each has noise of its own."""
    true = 0.9 - 0.12 * np.linspace(-1, 1, trials) ** 2 - 0.03 * rng.random(trials)
    own = noise * np.where(true < 0.82, 3, 1)  # what hardly trains is noisier
    return true[:, None] + 0.02 * rng.normal(size=seeds) + own[:, None] * rng.normal(size=(trials, seeds))


def race(curves: np.ndarray) -> list[int]:
    """How many seeds each trial gets of curves (trials, seeds, epochs), of which larger values are better."""
    seeds, had, going = curves.shape[1], [1] * len(curves), list(range(len(curves)))
    while True:
        racers = [racer(trial[:n]) for trial, n in zip(curves, had, strict=True)]
        ends = hopeless(racers, seeds, HALF_A_POINT)
        going = [t for t in going if not ends[t] and had[t] < seeds]
        if not going:
            return had
        others = [r for t, r in enumerate(racers) if t not in going]
        for t, goes in zip(going, who_goes_on([racers[t] for t in going], others, seeds), strict=True):
            had[t] += goes


def racer(curves: np.ndarray) -> Racer:
    """What is known of a trial after curves (seeds, epochs): its score is the mean over seeds at its best epoch."""
    means = tuple(float(curves[:n].mean(axis=0).max()) for n in range(1, len(curves) + 1))
    best = int(curves.mean(axis=0).argmax())
    return Racer(tuple(curves[:, best].tolist()), means, first=means[0])


def outcome(curves: np.ndarray) -> tuple[float, float]:
    """The share of the runs that a race takes, and what its choice is worth less than the exhaustive search's."""
    had, seeds = race(curves), curves.shape[1]
    final = curves.mean(axis=1).max(axis=1)
    return sum(had) / (len(curves) * seeds), final.max() - max(final[t] for t, n in enumerate(had) if n == seeds)


def told(first: str, outcomes: list[tuple[float, float]]) -> str:
    runs, lost = np.array(outcomes).T
    late = f"{100 * np.quantile(lost, 0.95):.2f} | {100 * np.mean(lost > HALF_A_POINT):.0f} %"
    return f"| {first} | {100 * runs.mean():.0f} % | {100 * lost.mean():.2f} | {late} |"


HEAD = "runs of the race | lost, points: mean | 95th percentile | more than 0.5 |\n|---|---|---|---|---|"


def simulate(races: int = 500) -> None:
    print(f"| noise of a score, points | {HEAD}")
    for noise in (0.005, 0.01, 0.02, 0.03):
        rng = np.random.default_rng(0)
        print(told(f"{100 * noise:g}", [outcome(drawn(rng, noise)[:, :, None]) for _ in range(races)]), flush=True)


def replay(folder: Path, seeds: int, races: int = 100) -> None:
    """Race what an exhaustive search of trainings without corrections has left in a folder."""
    store, found = Store(folder), defaultdict[str, dict[str, dict[int, list[float]]]](lambda: defaultdict(dict))
    for record in store.records():
        if record.finished and (curve := record.curves.get("valid_balanced_accuracy")):
            recipe = Recipe.from_dict(record.recipe)
            trial = f"{recipe.plan.lr} {recipe.plan.weight_decay}"
            found[f"{recipe.loss} {recipe.weighting}"][trial][recipe.seed] = curve
    print(f"| method | {HEAD}")
    for method, trials in found.items():
        every = set.intersection(*(set(curves) for curves in trials.values()))
        curves = np.array([[row[seed] for seed in sorted(every)] for row in trials.values()])
        rng = np.random.default_rng(0)
        print(told(method, [outcome(curves[:, rng.permutation(len(every))[:seeds]]) for _ in range(races)]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--replay", type=Path)
    arguments = parser.parse_args()
    if arguments.simulate:
        simulate()
        return
    if arguments.replay:
        replay(arguments.replay, arguments.seeds)
        return
    study = Study.from_dict({**STUDY, "tune": {"trials": arguments.trials, "seeds": arguments.seeds, "space": SPACE}})
    with tempfile.TemporaryDirectory() as folder:
        store = Store(arguments.out or Path(folder) / "tuning")
        whole, raced = (searched(study, store, race) for race in (False, True))
    print("| method | runs, exhaustive | runs, race | share | its choice, % | the race's choice, % | lost, points |")
    print("|---|---|---|---|---|---|---|")
    for one, other in zip(whole.methods, raced.methods, strict=True):
        print(row(one, other))


if __name__ == "__main__":
    main()
