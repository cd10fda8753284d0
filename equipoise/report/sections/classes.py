"""Accuracy of each class: against its size, class by class, and as a table."""

from __future__ import annotations

from functools import partial

from markupsafe import Markup

from ...store import Store
from ..collected import Collected
from ..figures.classes import class_plot, size_plot
from ..render.svg import both
from ..render.tables import class_table
from .section import Folded, Section, Sorted

SIZES = "Against the size of the class"
CLASSES = Markup("Class by class, with 95&nbsp;% intervals over seeds")


def classes(store: Store, results: Collected) -> Section | None:
    """Of many classes each has no room for its interval, and only their sizes are drawn."""
    by_size, by_class = both(partial(size_plot, results)), both(partial(class_plot, results))
    titled = tuple((title, figure) for title, figure in ((SIZES, by_size), (CLASSES, by_class)) if figure)
    if not titled:
        return None
    sentence = (
        "Test accuracy in %, from the classes with most training images on the left to those with fewest on the right."
    )
    if not by_class:
        sentence += " A faint dot is a class, a line joins means of classes of about one size."
    return Section(
        "classes", "Accuracy of each class", sentence, titled=titled, folded=_as_a_table(results), menu="Classes"
    )


def _as_a_table(results: Collected) -> Folded:
    header, rows = class_table(results)
    which = ": the largest and the smallest classes" if len(rows) < len(results.class_names) else ""
    caption = "Accuracy of each class, %: mean ± half of its 95 % interval over seeds"
    return Folded(f"As a table{which}", table=Sorted(header, rows, caption, texts=1, by=2))
