"""How validation scores depend on what was tuned."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...core import EquipoiseError
from ...store import Sensitivity, Store
from ..collected import Collected, Estimate
from ..figures.sensitivity import Trial, sensitivity_plot
from ..render.words import title_of
from .analyzed import said
from .section import Section

NAME, TITLE = "sensitivity", "Sensitivity"


def sensitivity(store: Store, results: Collected) -> Section | None:
    """The score at each value of each dial, where tuning wrote sensitivity.json."""
    if not store.holds(Sensitivity):
        return None
    try:
        trials = list(trials_of(store.document(Sensitivity)))
    except EquipoiseError as error:
        return said(NAME, TITLE, error)
    dials = dict.fromkeys(trial.dial for trial in trials)
    figures = tuple(filter(None, (sensitivity_plot(results, dial, trials) for dial in dials)))
    if not figures:
        return None
    sentence = (
        f"{title_of(f'valid_{results.metric}')} at each value that was tried, the best where other dials were tried "
        "with it; whiskers are 95 % intervals where they are known, the largest mark is the best value."
    )
    return Section(NAME, TITLE, sentence, figures, further=True)


def trials_of(document: Sensitivity) -> Iterator[Trial]:
    """A point for each value with a score."""
    for method in document.methods:
        for dial in method.dials:
            for point in dial.points:
                if point.marginal is not None:
                    score = Estimate(1, point.marginal, math.nan, math.nan)
                    yield Trial(method.name, dial.dial, point.value, score)
