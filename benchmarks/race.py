"""Does a race find what an exhaustive search finds, in half the runs? Two methods on digits, both ways.

    python benchmarks/race.py [--out FOLDER] [--trials 10] [--seeds 6]
    python benchmarks/race.py --simulate

Both searches use one folder, so a run that both need is done once; what a race would have cost is counted. Prints a
Markdown table. A choice is judged by its mean validation score over all seeds, which the exhaustive search has as well.
With --simulate, made-up scores of 12 trials × 6 seeds are raced instead, 500 times for each amount of noise.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from equipoise.store import Store
from equipoise.study import How, Listener, Study, tune_study
from equipoise.study.tune.method import HALF_A_POINT
from equipoise.study.tune.outcome import MethodOutcome, Outcome
from equipoise.study.tune.race import hopeless_trials

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


def raced_scores(scores: np.ndarray) -> list[list[float]]:
    """What each trial has in the end, when its scores (trials, seeds) are given out seed by seed."""
    had: list[list[float]] = [[] for _ in scores]
    going = np.full(len(scores), True)
    for seed in range(scores.shape[1]):
        for trial in np.flatnonzero(going):
            had[trial].append(scores[trial, seed])
        going &= ~np.array(hopeless_trials(had, seed + 1, higher_is_better=True, margin=HALF_A_POINT))
    return had


def simulate(races: int = 500) -> None:
    print("| noise of a score, points | runs of the race | lost, points: mean | 95th percentile |\n|---|---|---|---|")
    for noise in (0.005, 0.01, 0.02, 0.03):
        rng, lost, runs = np.random.default_rng(0), [], []
        for _ in range(races):
            scores = drawn(rng, noise)
            had = raced_scores(scores)
            whole = [trial for trial, row in enumerate(had) if len(row) == scores.shape[1]]
            means = scores.mean(axis=1)
            lost.append(100 * (means.max() - means[whole].max()))
            runs.append(sum(map(len, had)) / scores.size)
        share = f"{100 * np.mean(runs):.0f} %"
        print(f"| {100 * noise:g} | {share} | {np.mean(lost):.2f} | {np.quantile(lost, 0.95):.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--simulate", action="store_true")
    arguments = parser.parse_args()
    if arguments.simulate:
        simulate()
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
