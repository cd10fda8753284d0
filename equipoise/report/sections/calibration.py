"""Whether methods are as sure as they are right."""

from __future__ import annotations

from markupsafe import Markup

from ...store import Store
from ..collected import Collected
from ..figures.calibration import reliability_plot
from ..figures.intervals import score_plot
from .section import Section

SENTENCE = Markup(
    "Whether a prediction made with 80&nbsp;% confidence is right in 80&nbsp;% of cases: on the diagonal it is, below "
    "it the method is too sure. Samples of all finished runs together; intervals are over seeds."
)


def calibration(store: Store, results: Collected) -> Section | None:
    figures = (reliability_plot(results), score_plot(results, "ece"), score_plot(results, "nll"))
    shown = tuple(filter(None, figures))
    return Section("calibration", "Calibration", SENTENCE, shown) if shown else None
