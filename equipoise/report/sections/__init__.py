"""The sections of the page that show figures.

To add one, write a function of the store and the results that gives a `Section`, or None where there is nothing to
show, and put it in `SECTIONS`. The page, its menu, its legends and its printing know no more of it.
"""

from collections.abc import Callable

from ...store import Store
from ..results import Results
from ._reading import section_of
from .beyond import further, robustness, transfer
from .calibration import calibration
from .class_progress import progress
from .classes import classes
from .representations import representations
from .section import Section
from .sensitivity import sensitivity
from .similarity import similarity
from .training import training
from .weights import alpha, weights

SECTIONS: tuple[Callable[[Store, Results], Section | None], ...] = (
    classes,
    training,
    calibration,
    section_of("predictions", similarity),
    section_of("representations", representations),
    section_of("transfer", transfer),
    section_of("further", further),
    section_of("corruptions", robustness),
    section_of("weights", weights),
    section_of("alpha", alpha),
    sensitivity,
    progress,
)


def sections_of(store: Store, results: Results) -> list[Section]:
    """Those for which the store has something to show, as they stand on the page."""
    return [section for make in SECTIONS if (section := make(store, results))]


__all__ = ["SECTIONS", "Section", "sections_of"]
