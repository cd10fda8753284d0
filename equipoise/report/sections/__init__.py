"""The sections of the page that show figures.

To add one, write a function of the store and the results that gives a `Section`, or None where there is nothing to
show, and put it in `SECTIONS`. The page, its menu, its legends and its printing know no more of it.
"""

from collections.abc import Callable

from ...store import Store
from ..collected import Collected
from .analyzed import analyzed, unreadable
from .beyond import further, robustness, transfer
from .calibration import calibration
from .class_progress import progress
from .classes import classes
from .confused import confused
from .representations import representations
from .section import Section
from .sensitivity import sensitivity
from .similarity import similarity
from .training import training
from .weights import alpha, weights

SECTIONS: tuple[Callable[[Store, Collected], Section | None], ...] = (
    classes,
    confused,
    training,
    calibration,
    unreadable,
    analyzed("predictions", "similarity", "Similarity of predictions", similarity),
    analyzed("representations", "representations", "Representations", representations),
    analyzed("transfer", "transfer", "Transfer", transfer),
    analyzed("further", "further", "Further test images", further),
    analyzed("corruptions", "robustness", "Robustness", robustness),
    analyzed("imagenet_c", "imagenet-c", "ImageNet-C", robustness),
    analyzed("weights", "weights", "Class weights", weights),
    analyzed("alpha", "alpha", "Example weight", alpha),
    sensitivity,
    progress,
)


def sections_of(store: Store, results: Collected) -> list[Section]:
    """Those for which the store has something to show, as they stand on the page."""
    return [section for make in SECTIONS if (section := make(store, results))]


__all__ = ["SECTIONS", "Section", "sections_of"]
