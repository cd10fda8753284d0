"""The section on what happened to the classes while training, where a study asked for it to be recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from markupsafe import Markup

from ...store import Store
from ..collect import estimates
from ..collected import Collected, Estimate, Method
from ..figures.lines import Axis, Values, line_panel
from ..figures.plane import plane_plot
from .section import Section

Seen = dict[str, np.ndarray]

TEST = "test_"  # before the names of what was seen of test images
QUANTITIES = (  # name, title, the largest value there can be
    ("classification_ratio", "Predicted / true count", math.inf),
    ("train_accuracy", "Training accuracy", 1.0),
    (TEST + "feature_deviation", "Training from test features", math.inf),
    ("mixed_layer_gradient", "Gradient at the mixed layer", math.inf),
    # of stores of before the two above
    ("feature_deviation", "Training from validation features", math.inf),
    ("gradient_norm", "Gradient at the features", math.inf),
)
PLANE_MOMENTS = 4


def progress(store: Store, results: Collected) -> Section | None:
    """Curves of the most frequent and the rarest third of the classes, and planes where a head has two dimensions."""
    seen = {method.name: _seen(store, method) for method in results.methods}
    if not any(seen.values()):
        return None
    figures = [figure for quantity in QUANTITIES for figure in _pair(results, seen, *quantity)]
    figures.append(_range(results, seen))
    figures += [
        plane_plot(method, runs[0], _spread(runs[0]["epoch"]), _of_test(runs[0]))
        for method in results.methods
        if (runs := seen[method.name]) and "points" in runs[0]
    ]
    sentence = (
        "Means over the most frequent and over the rarest third of the classes, recorded at up to twenty epochs on "
        "the training images, without mixing; bands are 95 % intervals over seeds. A ratio above 1 says that too many "
        "samples are called so. The gradient is that of a sample's own loss, after the stage at which the method mixes "
        "features, or else the first. An output beyond its bound is one that training never showed the next layer."
    )
    return Section("progress", "Progress of the classes", sentence, tuple(filter(None, figures)), further=True)


def _seen(store: Store, method: Method) -> list[Seen]:
    arrays = []
    for run in method.runs:
        if run.finished and (seen := store.progress(run.key)):
            arrays.append(seen | {TEST + name: values for name, values in store.open_progress(run.key).items()})
    return arrays


def _of_test(seen: Seen) -> Seen | None:
    """What was seen of test images alone, where points of theirs were."""
    of_test = {name.removeprefix(TEST): values for name, values in seen.items() if name.startswith(TEST)}
    return of_test if "points" in of_test else None


def _pair(results: Collected, seen: Mapping[str, list[Seen]], name: str, title: str, most: float) -> list[Markup]:
    """Two panels: frequent and rare classes."""
    order = np.argsort(-np.array(results.class_counts), kind="stable")
    third = max(1, len(order) // 3)
    groups = {"frequent classes": order[:third], "rare classes": order[-third:]}
    return [
        _panel(results, f"{title}: {group}", _curves(seen, name, partial(_mean_of, rows)), most)
        for group, rows in groups.items()
    ]


def _mean_of(classes: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.nanmean(values[:, classes], axis=1)


def _range(results: Collected, seen: Mapping[str, list[Seen]]) -> Markup:
    curves = _curves(seen, "norm_range", lambda far: (far[:, :, 1] / far[:, :, 2]).max(axis=1))
    return _panel(results, "Farthest output of a norm, over its bound", curves)


def _curves(
    seen: Mapping[str, list[Seen]], name: str, reduce: Callable[[np.ndarray], np.ndarray]
) -> dict[str, list[tuple[int, Estimate]]]:
    curves = {}
    for method, runs in seen.items():
        if having := [run for run in runs if name in run]:
            values = estimates([reduce(run[name]).tolist() for run in having])
            curves[method] = list(zip(having[0]["epoch"].tolist(), values, strict=True))
    return curves


def _panel(
    results: Collected, title: str, curves: Mapping[str, list[tuple[int, Estimate]]], most: float = math.inf
) -> Markup:
    if not curves:
        return Markup("")
    axis = Axis.of([epoch for curve in curves.values() for epoch, _ in curve], "epoch")
    return line_panel(results, title, axis, curves, Values(floor=0.0, ceiling=most, digits=2), marks=False)


def _spread(epochs: np.ndarray) -> list[int]:
    """A few of the epochs, the first and the last among them."""
    places = np.linspace(0, len(epochs) - 1, min(PLANE_MOMENTS, len(epochs))).round().astype(int)
    return [int(epochs[i]) for i in places]
