"""What features are worth to other data, and how errors grow when images are corrupted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from markupsafe import Markup

from ...analysis.statistics.priority import ALL_METRICS
from ...store.analysis import Against, Corruptions, FurtherImages, Transfer
from ..collected import Collected
from ..figures.heat import Shades, named_rows
from ..figures.lines import Axis, Values, line_panel, rows_panel
from ..figures.scatter import scatter_panel
from ..render.words import title_of
from ._reading import SHARE, captioned, curve_of, estimate_of, mean, number, seeds, whole
from .section import Section


def transfer(tasks: Sequence[Transfer], results: Collected) -> Section | None:
    """A linear classifier on the features for other data, and whether separated classes cost it accuracy."""
    figures = []
    for part in tasks:
        name = part.task.partition("(")[0]
        rows = {m.name: estimate_of(m.accuracy) for m in part.methods}
        n = max(e.n for e in rows.values())
        figures.append(
            captioned(
                rows_panel(results, f"Accuracy on {name} of a linear classifier, %", rows, SHARE),
                f"Fitted to the features of {part.train} images of {name}, judged on {part.test} others; mean "
                f"and 95 % interval over {seeds(n)}.",
            )
        )
        if part.separation:
            figures.append(_against(results, part.separation, name, "Class separation R² of the features"))
        if part.own_accuracy:
            figures.append(
                _against(results, part.own_accuracy, name, "Accuracy on the study's own test images, %", 100)
            )
    sentence = "What the features are worth to other data, on which a linear classifier of them is trained and no more."
    return whole("transfer", "Transfer", sentence, figures)


def _against(results: Collected, against: Against, name: str, words: str, factor: float = 1) -> Markup:
    """Accuracy elsewhere against another number of the runs, times `factor`, that `words` name."""
    pairs = {n: [(factor * number(x), number(y)) for x, y in points] for n, points in against.runs.items()}
    figure = scatter_panel(results, f"Accuracy on {name}, %", words, pairs, 100)
    rho, n = against.rank_correlation, against.methods
    said = "" if rho is None else f" Rank correlation of the means of {n} methods: {rho:+.2f}.".replace("-", "−")
    return captioned(figure, f"A small dot for each run, a large mark for each method's mean.{said}")


def further(folders: Sequence[FurtherImages], results: Collected) -> Section | None:
    """The study's metric on test images from elsewhere, and beside it on the study's own of the same classes."""
    figures = []
    for part in folders:
        name = PurePath(part.folder).name
        n = max(m.score.n for m in part.methods)
        metric = ALL_METRICS[part.metric]
        values, unit = (SHARE, ", %") if metric.unit == "percent" else (Values(digits=3), "")
        classes = f"Predictions are among these classes; mean and 95 % interval over {seeds(n)}."
        for scores, title, said in (
            (
                {m.name: m.score for m in part.methods},
                f"{title_of(metric.name)} on {name}{unit}",
                f"{part.images} images of {part.classes} classes.",
            ),
            (
                {m.name: m.own_score for m in part.methods},
                f"{title_of(metric.name)} here{unit}",
                "The study's own test images of the same classes.",
            ),
        ):
            rows = {method: estimate_of(score) for method, score in scores.items()}
            panel = rows_panel(results, title, rows, values, up=metric.higher_is_better)
            figures.append(captioned(panel, f"{said} {classes}"))
    return whole("further", "Further test images", "How the methods do on images from elsewhere.", figures)


def robustness(corruptions: Corruptions, results: Collected) -> Section | None:
    """Errors on corrupted test images."""
    methods = {m.name: m for m in corruptions.methods}
    images = corruptions.images
    axis = Axis.named(["clean", "1", "2", "3", "4", "5"], "Severity")
    curves = {name: curve_of(m.by_severity, axis) for name, m in methods.items()}
    mce = {name: estimate_of(m.mce) for name, m in methods.items()}
    kinds = list(corruptions.methods[0].errors)
    rows = [kind.replace("_", " ") for kind in kinds]
    matrix = [[mean(e.mean for e in m.errors[kind]) for m in methods.values()] for kind in kinds]
    n = max(e.n for curve in curves.values() for _, e in curve)
    is_made = corruptions.folder is None
    relative = "the baseline's run of the same seed" if is_made else "AlexNet does by its published errors"
    figures = [
        captioned(
            rows_panel(
                results, f"Mean corruption error, % of {corruptions.baseline}'s", mce, Values(digits=1), up=False
            ),
            f"Below 100 a method suffers less than {relative}; 15 corruptions × 5 severities "
            f"of {images} images, 95 % intervals over {seeds(n)}.",
        ),
        captioned(
            line_panel(results, "Error by severity, %", axis, curves, SHARE),
            f"Mean over 15 corruptions, with 95 % intervals over {seeds(n)}, {images} images.",
        ),
        captioned(
            named_rows(results, "Error on each corruption, %", rows, list(methods), matrix, Shades.of(matrix, 100, 0)),
            f"Mean over 5 severities and the seeds; {images} images.",
        ),
    ]
    if is_made:
        sentence = "Errors on test images that were corrupted in fifteen common ways."
        return whole("robustness", "Robustness", sentence, figures)
    return whole("imagenet-c", "ImageNet-C", f"Errors on the corrupted images in {corruptions.folder}.", figures)
