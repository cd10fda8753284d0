"""Curves of training: the first few at once, the others where a reader asks for them."""

from __future__ import annotations

from markupsafe import Markup

from ...store import Store
from ..collected import Collected
from ..figures.curves import curve_plot
from .section import Folded, Section

MAIN_CURVES = 3
SENTENCE = Markup(
    "Mean over the finished runs with its 95&nbsp;% interval. Losses of different methods are different quantities: "
    "compare their course, not their height."
)


def training(store: Store, results: Collected) -> Section | None:
    curves = tuple(filter(None, (curve_plot(results, name) for name in results.curve_names)))
    if not curves:
        return None
    main, more = curves[:MAIN_CURVES], curves[MAIN_CURVES:]
    folded = Folded(f"{len(more)} further curves", more) if more else None
    return Section("training", "Training", SENTENCE, main, folded=folded)
