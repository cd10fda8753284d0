"""What the networks of a study make of images, layer by layer, and of their features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from ...store.analysis import Embedding, Likeness, MethodLayers, Representations
from ..collected import Collected
from ..figures.heat import Clustered, Shades, cluster_plot
from ..figures.lines import Axis, Values, line_panel, mark_panel, rows_panel
from ..figures.multiples import LayerPair, distance_densities, feature_maps, layer_maps
from ..render.svg import both
from ._reading import (
    NONE,
    SHARE,
    captioned,
    curve_of,
    numbers,
    plain_curve,
    row_of,
    seeds,
    whole,
    without_diagonal,
)
from .section import Section

R2 = Values(floor=0.0, ceiling=1.0)
SPECTRA = {"features": "the features", "centroids": "the class means", "head": "the head's weights"}


def representations(measured: Representations, results: Collected) -> Section | None:
    """Layer by layer, between methods, and of the features."""
    methods = {m.name: m for m in measured.methods}
    panels, large = _likeness(results, methods, measured.cka)
    figures = [
        *_by_layer(results, methods, measured.separated),
        *panels,
        *(_spectrum(results, methods, kind, words) for kind, words in SPECTRA.items()),
        _hardness(results, methods),
        *large,
        _distances(results, methods, measured.separated),
        _points(results, measured.embedding, measured.class_names),
    ]
    sentence = (
        f"What the trained networks make of images. Class separation, spectra and distances are of "
        f"{measured.separated}, all else of {measured.images} test images. A layer is the output of a block; features "
        "feed the head. Post-hoc methods change outputs only, and have no line of their own."
    )
    return whole("representations", "Representations", sentence, figures)


def layers_axis(results: Collected, methods: Mapping[str, MethodLayers]) -> Axis:
    """The layers of the baseline, or of the first method that was measured."""
    first = methods.get(results.baseline) or next(iter(methods.values()))
    return Axis.named([name.removeprefix("body.") for name in first.layers])


def _by_layer(results: Collected, methods: Mapping[str, MethodLayers], images: str) -> list[Markup]:
    axis = layers_axis(results, methods)
    separation = {name: curve_of(m.separation["cosine"], axis) for name, m in methods.items()}
    nonzero = {name: curve_of(m.nonzero, axis) for name, m in methods.items()}
    last = {name: curve[-1][1] for name, curve in separation.items()}
    over = f"mean and 95 % interval over {seeds(max(e.n for e in last.values()))}"
    kinds = ("cosine", "centred", "Euclidean")
    by_kind = {
        name: curve_of([m.separation["cosine"][-1], m.centered, m.separation["euclidean"][-1]], Axis.named(kinds))
        for name, m in methods.items()
    }
    return [
        captioned(
            line_panel(results, "Class separation R² by layer", axis, separation, R2),
            f"By cosine distance, maps averaged over positions: 1 where each class is one direction, 0 where classes "
            f"are not apart; {over}, {images}.",
        ),
        captioned(
            rows_panel(results, "Class separation R² of the features", last, R2),
            f"The last layer of the figure before, the most separated first; {over}.",
        ),
        captioned(
            mark_panel(results, "Class separation R² by distance", Axis.named(kinds), by_kind, R2),
            f"Of the features, by cosine, by cosine around their mean, and by squared Euclidean distance; {over}.",
        ),
        captioned(
            line_panel(results, "Values that are not zero, %", axis, nonzero, SHARE),
            f"Of a layer's values after its ReLU, on test images; features are averaged over positions before. "
            f"{over.capitalize()}.",
        ),
    ]


# -- between methods -------------------------------------------------------------------------------------------------


def _likeness(
    results: Collected, methods: Mapping[str, MethodLayers], cka: Likeness | None
) -> tuple[list[Markup], list[Markup]]:
    """Panels, and figures of a row's width."""
    if not cka:
        return [], []
    runs, features = [(run.method, run.seed) for run in cka.runs], numbers(cka.features)
    tree = Clustered(runs, features, cka.order, numbers(cka.tree.x), numbers(cka.tree.height))
    shades = Shades.of(without_diagonal(features))
    every = captioned(
        both(lambda wide: cluster_plot(results, "CKA of the features of two runs", tree, shades, wide)),
        f"How alike the features of {len(runs)} runs are on {cka.images} test images: 1 if one is the other but for "
        "rotation and scale. Like runs stand side by side.",
    )
    pairs = _layer_pairs(results, methods, cka)
    averaged = ", maps averaged over positions" if cka.maps == "pooled" else ""
    over = f"mean over pairs of runs of unlike seeds, of {seeds(cka.seeds)} each, {cka.images} images{averaged}"
    maps = captioned(
        both(lambda wide: layer_maps(results, "CKA of layers with those of the baseline", pairs, wide)),
        f"Upwards the layers of a method, to the right those of {results.baseline}, from faint (0, unlike) to full (1, "
        f"alike). Debiased linear CKA, {over}.",
    )
    return [_same_layer(results, methods, pairs, over)], [maps, every]


def _layer_pairs(results: Collected, methods: Mapping[str, MethodLayers], cka: Likeness) -> dict[str, LayerPair]:
    """Each method's layers against the baseline's; none where the baseline was not measured."""
    if results.baseline not in cka.methods:
        return {}
    columns, blocks = methods[results.baseline].layers, cka.layers[cka.methods.index(results.baseline)]
    return {
        name: LayerPair(methods[name].layers, columns, list(zip(*numbers(block), strict=True)))
        for name, block in zip(cka.methods, blocks, strict=True)
        if block is not None
    }


def _same_layer(
    results: Collected, methods: Mapping[str, MethodLayers], pairs: Mapping[str, LayerPair], over: str
) -> Markup:
    """The diagonal of the maps, of methods with the baseline's layers."""
    same = {
        name: plain_curve(range(len(pair.rows)), (pair.matrix[i][i] for i in range(len(pair.rows))))
        for name, pair in pairs.items()
        if list(pair.rows) == list(pair.columns)
    }
    title = f"CKA with the same layer of {results.baseline}"
    return captioned(
        line_panel(results, title, layers_axis(results, methods), same, Values(digits=2, ceiling=1.0)),
        f"Where methods part from the baseline, whose own line compares its seeds: {over}.",
    )


# -- the features ----------------------------------------------------------------------------------------------------


def _spectrum(results: Collected, methods: Mapping[str, MethodLayers], kind: str, words: str) -> Markup:
    rows = {name: m.spectra[kind] for name, m in methods.items() if kind in m.spectra}
    longest = max(map(len, rows.values()), default=0)
    if longest < 2:
        return NONE
    curves = {name: plain_curve(range(1, len(row) + 1), row) for name, row in rows.items()}
    axis = Axis.of([1.0, float(longest)], "Place in the spectrum")
    return captioned(
        line_panel(results, f"Singular values of {words}", axis, curves, Values(log=True, floor=1e-4), marks=False),
        "Around the mean, relative to the largest, log scale; mean over seeds. The steeper, the fewer directions.",
    )


def _hardness(results: Collected, methods: Mapping[str, MethodLayers]) -> Markup:
    rows = {name: m.hardness.density for name, m in methods.items() if m.hardness}
    if not rows:
        return NONE
    curves = {name: plain_curve((2 * i / (len(row) - 1) for i in range(len(row))), row) for name, row in rows.items()}
    axis = Axis.of([0.0, 2.0], "Angle to the true class over the mean angle")
    return captioned(
        line_panel(results, "Angular visual hardness, density", axis, curves, Values(digits=1, floor=0.0), marks=False),
        "Images at the left are easy: their features lie near the weights of their class. Mean over seeds.",
    )


def _distances(results: Collected, methods: Mapping[str, MethodLayers], images: str) -> Markup:
    within, between = (
        {name: row_of(m.distances[kind]) for name, m in methods.items()} for kind in ("within", "between")
    )
    paired, which = next(iter(methods.values())).pairs_of, images.partition(" ")[2]
    title = "Cosine distance of the features of two images"
    return captioned(
        both(lambda wide: distance_densities(results, title, within, between, wide)),
        f"Filled: images of one class; line: of two classes; all pairs of {paired} {which}, mean over seeds. Heights "
        "are square roots of densities, so that tails can be seen. The less overlap, the further apart the classes.",
    )


def _points(results: Collected, embedding: Embedding, classes: Sequence[str]) -> Markup:
    points = {m.name: numbers(m.points) for m in embedding.methods}
    shares = [100 * m.share for m in embedding.methods if m.share is not None]
    kept = f" They hold {min(shares):.0f} to {max(shares):.0f} % of the variance." if shares else ""
    how = "along the two directions of largest variance" if embedding.kind == "PCA" else "in two dimensions by t-SNE"
    which = "training and test" if embedding.training else "test"
    marks = f" Dots are {embedding.training} training images, crosses are test images." if embedding.training else ""
    title = f"Features of {which} images, {embedding.kind}"
    return captioned(
        both(lambda wide: feature_maps(results, title, points, embedding.labels, classes, embedding.training, wide)),
        f"{len(embedding.labels)} images {how}, coloured by class, of one seed of each method.{marks}{kept}",
    )
