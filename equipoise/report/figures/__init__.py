"""The drawings of a report, as inline SVG.

Colours are classes that page.css resolves, so that one drawing serves light and dark. A method has the same colour,
shape and dashes everywhere; the baseline is grey. Text keeps its size on a telephone because a drawing is either a
panel of a telephone's width, or made twice, `wide` and narrow, and the page shows the one that fits.
"""

from ._parts import MANY_CLASSES
from .calibration import reliability_diagram, reliability_plot
from .classes import class_bars, class_plot, size_plot
from .confusion import confusion_plot, worst_confusions
from .curves import curve_plot
from .intervals import MOST_ROWS, interval_plot, score_plot
from .sensitivity import Trial, sensitivity_plot

__all__ = [
    "MANY_CLASSES",
    "MOST_ROWS",
    "Trial",
    "class_bars",
    "class_plot",
    "confusion_plot",
    "curve_plot",
    "interval_plot",
    "reliability_diagram",
    "reliability_plot",
    "score_plot",
    "sensitivity_plot",
    "size_plot",
    "worst_confusions",
]
