"""How alike methods predict."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from ...store.analysis import Ensembles, Matrix, Predictions
from ..collected import Collected
from ..figures.heat import Clustered, Shades, cluster_plot, method_matrix
from ..render.svg import both
from ._reading import captioned, numbers, row_of, whole, without_diagonal
from .section import Section


def similarity(predictions: Predictions, results: Collected) -> Section | None:
    """Runs and methods by how alike they predict, and what they reach when they vote."""
    runs = [(run.method, run.seed) for run in predictions.runs]
    images, between, names = predictions.images, predictions.between, predictions.methods
    top1 = numbers(predictions.same_top1)
    shades = Shades.of(without_diagonal(top1), 100, 1)
    clustered = Clustered(runs, top1, predictions.order, numbers(predictions.tree.x), numbers(predictions.tree.height))
    over = "mean over pairs of runs of unlike seeds; on the diagonal two seeds of one method"
    figures = [
        captioned(
            both(lambda wide: cluster_plot(results, "Same prediction, % of images", clustered, shades, wide)),
            f"Share of {images} test images that two runs give the same class, for {len(runs)} runs; runs that branch "
            "off together at the right of the tree are the most alike.",
        ),
        _methods(results, "Same prediction, %", names, between["same_top1"], f"The same, {over}, {images} images."),
        _methods(
            results,
            "Both right or both wrong, %",
            names,
            between["both_right_or_wrong"],
            f"Of {images} images, whatever the two runs take the wrong ones for; {over}.",
        ),
        _methods(
            results,
            "Same class among shared errors, %",
            names,
            between["same_error"],
            f"Of those of {images} images that both runs get wrong, the share they take for the same class; {over}.",
        ),
        *_ensembles(results, predictions.ensembles, images),
    ]
    sentence = (
        "Whether methods differ in what they predict, beyond how often they are right. Runs that make the same errors "
        "have learned much the same."
    )
    return whole("similarity", "Similarity of predictions", sentence, figures, legend=False)


def _methods(results: Collected, title: str, names: Sequence[str], matrix: Matrix, sentence: str) -> Markup:
    values = numbers(matrix)
    return captioned(method_matrix(results, title, names, values, Shades.of(values, 100, 1)), sentence)


def _ensembles(results: Collected, ensembles: Ensembles | None, images: int) -> list[Markup]:
    if ensembles is None:
        return []
    alone = row_of(ensembles.alone)
    sentence = (
        f"Accuracy of {ensembles.voters} runs that vote, about half of each method, on {images} test images; on the "
        f"diagonal all are of one method. One run alone reaches {100 * min(alone):.1f} to "
        f"{100 * max(alone):.1f} % by method."
    )
    title = f"Accuracy of ensembles of {ensembles.voters}, %"
    figures = [_methods(results, title, ensembles.methods, ensembles.accuracy, sentence)]
    if ensembles.agreement:
        apart = tuple(
            tuple(v if i != j else None for j, v in enumerate(row)) for i, row in enumerate(ensembles.agreement)
        )
        voters = f"{ensembles.voters} runs"
        said = f"Share of {images} test images that the votes of {voters} of two methods give the same class."
        figures.append(_methods(results, f"Same vote of {voters}, %", ensembles.methods, apart, said))
    return figures
