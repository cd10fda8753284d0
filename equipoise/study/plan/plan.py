"""What a study will cost and what it can show, in words, before it runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from scipy import special

from ...analysis.statistics.equivalence import pairs_for_equality
from ...analysis.statistics.power import claim_power, detectable_effect, pairs_needed
from ...analysis.statistics.priority import ALL_METRICS
from ...analysis.statistics.sequential import Rounds
from ...analysis.statistics.tests import smallest_n_for_claim
from ...analysis.statistics.verdict import Verdict
from ...core import EquipoiseError
from ...core.times import about
from ...core.words import counted
from ...store import Store
from ..run.job import jobs_of
from ..scores import paired_scores
from ..study import Study
from .cost import RunTimes
from .forecast import ALPHA, LIKELY, percent, time_words, too_few

LEAST_PAIRS = 3  # that a spread is taken from
EFFECTS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0)  # times the spread


@dataclass(frozen=True)
class Spread:
    """Standard deviation, from seed to seed, of a method's difference to the baseline; and where that is known from."""

    value: float
    source: str


def find_spread(study: Study, store: Store, stated: float | None = None, pilot: Store | None = None) -> Spread:
    """As stated (in points where the metric is a percentage), of a pilot study, of this store's runs, or 1 point."""
    point = ALL_METRICS[study.metric].point
    if stated is not None:
        return Spread(stated * point, "as you say")
    if pilot is not None:
        spread_seen = _of_results(study, pilot) or _of_validation(study, pilot)
        if spread_seen is None:
            raise EquipoiseError(f"{pilot.path} has no {LEAST_PAIRS} pairs of finished runs on {study.metric}")
        return spread_seen
    assumed = Spread(point, "an assumption; give yours with --spread, or --pilot with a small study")
    return _of_validation(study, store) or assumed


def _of_results(study: Study, pilot: Store) -> Spread | None:
    """Of what a report has written: the test set of such a study is open."""
    if not (pilot.path / "verdict.json").exists():
        return None
    spread = pilot.read("verdict.json", lambda plain: _spread_of(Verdict.from_dict(plain), study.metric))
    return None if spread is None else Spread(spread, f"on the test set of {pilot.path}")


def _spread_of(verdict: Verdict, metric: str) -> float | None:
    rows = [row for row in verdict.methods if row.n_pairs >= LEAST_PAIRS]
    if verdict.metric != metric or not rows:
        return None
    half = np.array([(row.diff_high - row.diff_low) / 2 for row in rows])
    n = np.array([row.n_pairs for row in rows])
    return _pooled(half * np.sqrt(n) / special.stdtrit(n - 1, 1 - verdict.alpha / 2))


def _of_validation(study: Study, store: Store) -> Spread | None:
    if not store.exists:
        return None
    scores = paired_scores(study, store)
    differences = [np.subtract(x, scores[study.baseline]) for name, x in scores.items() if name != study.baseline]
    known = [d[~np.isnan(d)] for d in differences]
    spreads = [float(d.std(ddof=1)) for d in known if len(d) >= LEAST_PAIRS]
    source = f"on the validation data of {store.path}; less on a larger test set"
    return Spread(_pooled(spreads), source) if spreads else None


def _pooled(spreads: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(spreads))))


# -- words -------------------------------------------------------------------------------------------------------------


def print_plan(study: Study, times: RunTimes, workers: int, spread: Spread, console: Console) -> None:
    """What each method costs, and the chance that differences of several sizes are shown."""
    comparisons, n = len(study.methods) - 1, len(study.seeds)
    label = ALL_METRICS[study.metric].label
    console.print(f"[bold]{escape(study.question)}[/]")
    against = f"{counted(comparisons, 'method')} against {escape(study.baseline)}"
    console.print(f"{against} on {label}, with {counted(n, 'seed')}.\n")
    _print_cost(study, times, workers, console)
    console.print(f"\nDifferences vary from seed to seed by {_amount(study, spread.value)}: {escape(spread.source)}.")
    if n < (least := smallest_n_for_claim(ALPHA, comparisons)):
        console.print(too_few(n, comparisons))
    best = max(comparisons, math.comb(comparisons, 2))
    shown = f"is shown by {counted(max(n, least), 'seed')}"
    table = _right("a true difference of", shown, "to beat the baseline", "to choose the best")
    for effect in EFFECTS:
        chance = claim_power(max(n, least), effect, ALPHA, comparisons)
        needed = [pairs_needed(effect, LIKELY, ALPHA, tests) for tests in (comparisons, best)]
        seeds = [counted(pairs, "seed") if pairs else "too many" for pairs in needed]
        table.add_row(_amount(study, effect * spread.value), percent(chance), *seeds)
    console.print(table)
    console.print(
        f"The last two columns are the seeds that show it with a chance of {percent(LIKELY)}: the difference to "
        f"{escape(study.baseline)}, or that between the best two methods."
    )
    _print_equality(study, spread, comparisons, console)
    console.print(f"Where nothing differs, the chance of any false claim is at most {percent(ALPHA)}.")


def _print_equality(study: Study, spread: Spread, comparisons: int, console: Console) -> None:
    """The seeds that show equal methods to be so, where the study says what counts as equal."""
    if study.equivalent_within is None:
        return
    margin = study.equivalent_within * ALL_METRICS[study.metric].point
    needed = pairs_for_equality(margin / spread.value, LIKELY, ALPHA, comparisons) if spread.value else None
    takes = "more seeds than anyone has" if needed is None else counted(needed, "seed")
    words = f"A method that equals {study.baseline} is shown to be so, within {_amount(study, margin)}, by"
    console.print(escape(f"{words} {takes} ({percent(LIKELY)})."))


def print_looks(study: Study, rounds: Rounds, times: RunTimes, workers: int, spread: Spread, console: Console) -> None:
    """The rounds of `--until-decided`: what each costs if no method is dropped, and what it can show."""
    comparisons, looks = len(study.methods) - 1, rounds.looks
    console.print("\nWith --until-decided, if no method is dropped before:")
    table = _right("look", "seeds", "trainings", "time", "error it may spend", f"shown with {percent(LIKELY)}")
    for look, (n, share) in enumerate(zip(looks.seeds, looks.shares, strict=True), start=1):
        until = replace(study, seeds=rounds.seeds[:n])
        cost = times.cost(jobs_of(recipe for _, recipe in until.recipes()), workers)
        effect = detectable_effect(n, LIKELY, ALPHA * share, comparisons)
        shown = _amount(study, effect * spread.value)
        table.add_row(str(look), str(n), str(cost.runs), about(cost.wall), f"{100 * ALPHA * share:.2g} %", shown)
    console.print(table)


def _print_cost(study: Study, times: RunTimes, workers: int, console: Console) -> None:
    table = _right("method", "a run takes")
    table.columns[0].justify = "left"
    for name, recipe in study.methods.items():
        table.add_row(escape(name), "nothing more" if recipe.posthoc else about(times.seconds(recipe)))
    console.print(table)
    cost = times.cost(jobs_of(recipe for _, recipe in study.recipes()), workers)
    console.print(escape(f"{counted(cost.runs, 'training')} to do, {time_words(cost, times)}."))


def _amount(study: Study, value: float) -> str:
    unit = ALL_METRICS[study.metric].unit
    if math.isinf(value):
        return "nothing"
    return f"{100 * value:.2f} points" if unit == "percent" else f"{value:.3g} {unit}".rstrip()


def _right(*titles: str) -> Table:
    table = Table(*titles, box=None, pad_edge=False)
    for column in table.columns:
        column.justify = "right"
    return table
