"""How validation scores depend on what was tuned."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ...store import Damaged, Store
from ..figures.sensitivity import Trial, sensitivity_plot
from ..render.words import title_of
from ..results import Estimate, Results
from .section import Section


def sensitivity(store: Store, results: Results) -> Section | None:
    """How the validation score depends on each dial that was tuned, from sensitivity.json where tuning wrote one."""
    trials = read_trials(store)
    dials = dict.fromkeys(trial.dial for trial in trials)
    figures = tuple(filter(None, (sensitivity_plot(results, dial, trials) for dial in dials)))
    if not figures:
        return None
    sentence = (
        f"{title_of(f'valid_{results.metric}')} at each value that was tried, the best where other dials were tried "
        "with it; whiskers are 95 % intervals where they are known, the largest mark is the best value."
    )
    return Section("sensitivity", "Sensitivity", sentence, figures, further=True)


def read_trials(store: Store) -> list[Trial]:
    """The points of sensitivity.json, as tuning writes it or as a list of {method, dial, value, mean, low, high, n}.

    A point without a score, and what is of another shape altogether, is passed over: a figure less is no reason to
    have no report.
    """
    if not (store.path / "sensitivity.json").exists():
        return []
    try:
        return store.read("sensitivity.json", _trials)
    except Damaged:
        return []


def _trials(content: Any) -> list[Trial]:
    entries = content if isinstance(content, list) else list(_points(content))
    return [_trial(entry) for entry in entries if isinstance(entry["mean"], int | float)]


def _points(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for method in content["methods"]:
        for dial in method["dials"]:
            for point in dial["points"]:
                yield {"method": method["name"], "dial": dial["dial"], "mean": point["marginal"], **point}


def _trial(entry: Mapping[str, Any]) -> Trial:
    mean, low, high = (_number(entry.get(name)) for name in ("mean", "low", "high"))
    return Trial(str(entry["method"]), str(entry["dial"]), entry["value"], Estimate(entry.get("n", 1), mean, low, high))


def _number(x: Any) -> float:
    return float(x) if isinstance(x, int | float) else math.nan
