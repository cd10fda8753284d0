"""Weights that methods choose: of classes by their size, of an image in its own normalization."""

from __future__ import annotations

from collections.abc import Mapping

from ...store.analysis import ClassWeights, ExampleWeights, Row
from ..collected import Collected
from ..figures.lines import Axis, Curve, Values, line_panel
from ._reading import SHARE, captioned, estimate_of, plain_curve, seeds, whole
from .section import Section


def weights(measured: ClassWeights, results: Collected) -> Section | None:
    """What a study's weightings make of class sizes."""
    counts = [float(n) for n in measured.counts]
    order = sorted((i for i in range(len(counts)) if counts[i] > 0), key=lambda i: counts[i])
    axis = Axis.of([counts[i] for i in order], "Training images of the class, log scale", log=True)

    def curves(rows: Mapping[str, Row | None]) -> dict[str, Curve]:
        places = [counts[i] for i in order]
        return {name: plain_curve(places, (row[i] for i in order)) for name, row in rows.items() if row}

    weight = curves({m.name: m.weights for m in measured.methods})
    effective = curves({m.name: m.effective for m in measured.methods})

    figures = [
        captioned(
            line_panel(results, "Weight of a class, log scale", axis, weight, Values(digits=2, log=True)),
            f"What each of {len(order)} classes counts in the loss; all weights together are the number of classes.",
        ),
        captioned(
            line_panel(results, "Effective number of images, log scale", axis, effective, Values(digits=0, log=True)),
            "(1 − βⁿ) / (1 − β) of a class of n images: the more there are, the less another one adds.",
        ),
    ]
    return whole(
        "weights", "Class weights", "How the methods that weigh classes weigh them, by the classes' sizes.", figures
    )


def alpha(measured: ExampleWeights, results: Collected) -> Section | None:
    """Validation scores at each example weight."""
    axis = Axis.of([0.0, 1.0], "Example weight α")
    figures = []
    for metric in dict.fromkeys(m.metric for m in measured.methods):
        own = [m for m in measured.methods if m.metric == metric]
        curves = {m.name: list(zip(measured.alphas, map(estimate_of, m.curve), strict=True)) for m in own}
        values = Values(digits=3) if metric == "loss" else SHARE
        title = f"Validation {metric.replace('_', ' ')}{'' if metric == 'loss' else ', %'}"
        n = max(len(m.best) for m in own)
        figures.append(
            captioned(
                line_panel(results, title, axis, curves, values, marks=False),
                f"At α = 0 the norms use moving averages alone, at 1 the image's own statistics; mean and 95 % "
                f"interval over {seeds(n)}, {measured.images} images.",
            )
        )
    return whole(
        "alpha", "Example weight", "How the weight that an image has in its own normalization was chosen.", figures
    )
