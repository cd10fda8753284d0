"""analysis.json: what `equipoise analyze` measured, a class for each part; `equipoise.study.probe` says how.

A number that is not known is None. An `Estimated` is a mean over seeds; other lists of numbers are means without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .filled import Filled, filled

Number = float | None
Row = tuple[Number, ...]
Matrix = tuple[Row, ...]


@dataclass(frozen=True)
class Estimated:
    """A mean over n seeds and its 95 % interval."""

    n: int
    mean: Number
    low: Number
    high: Number


@dataclass(frozen=True)
class RunName:
    method: str
    seed: int


@dataclass(frozen=True)
class Tree:
    """A dendrogram as it is drawn: four places and four heights for each joint."""

    x: Matrix
    height: Matrix


@dataclass(frozen=True)
class Problem:
    """A run of which a part could not be measured, and why."""

    method: str
    seed: int
    part: str
    problem: str


# -- predictions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ensembles:
    """Accuracy (M, M) of runs of two methods that vote, and of one run alone (M,).

    `agreement` (M, M) is the share of images that the votes of all runs of two methods give the same class.
    """

    voters: int
    methods: tuple[str, ...]
    accuracy: Matrix
    alone: Row
    agreement: Matrix = ()


@dataclass(frozen=True)
class Predictions:
    """Matrices (R, R) of `runs`, which stand in `order` in the tree; `between` has the same (M, M) of `methods`."""

    images: int
    runs: tuple[RunName, ...]
    same_top1: Matrix
    both_right_or_wrong: Matrix
    same_error: Matrix
    order: tuple[int, ...]
    tree: Tree
    methods: tuple[str, ...]
    between: dict[str, Matrix]
    ensembles: Ensembles | None


# -- representations -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hardness:
    """Angular visual hardness times the number of classes: of all images, of those predicted right and wrong.

    `density` is at even places from 0 to 2.
    """

    mean: Estimated
    right: Estimated
    wrong: Estimated
    density: Row


@dataclass(frozen=True)
class MethodLayers:
    """`separation` and `nonzero` go by layer; `distances` are densities of all pairs of `pairs_of` images."""

    name: str
    layers: tuple[str, ...]
    separation: dict[str, tuple[Estimated, ...]]
    centered: Estimated
    nonzero: tuple[Estimated, ...]
    spectra: dict[str, Row]
    distances: dict[str, Row]
    pairs_of: int
    hardness: Hardness | None = None  # of networks with a linear head


@dataclass(frozen=True)
class Likeness:
    """CKA of the features of `runs` (R, R), of `methods` (M, M), and for each two methods of their layers (L, L').

    `maps` says what was done to layers that are maps: "flattened", or "pooled" to their means over positions.
    """

    images: int
    runs: tuple[RunName, ...]
    features: Matrix
    order: tuple[int, ...]
    tree: Tree
    methods: tuple[str, ...]
    between: Matrix
    seeds: int
    layers: tuple[tuple[Matrix | None, ...], ...]
    maps: str = "pooled"


@dataclass(frozen=True)
class MethodPoints:
    """Features of a run in two dimensions, and the share of the variance that these hold."""

    name: str
    seed: int
    points: Matrix
    share: Number


@dataclass(frozen=True)
class Embedding:
    """Points of images, of which the first `training` are of the training set and the others of the test set."""

    kind: str  # "PCA" or "t-SNE"
    labels: tuple[int, ...]
    methods: tuple[MethodPoints, ...]
    training: int = 0


@dataclass(frozen=True)
class Representations:
    """Sparsity, hardness and CKA are of `images` test images.

    Class separation, spectra and distances are of `training_images`, or, where an earlier version measured, of the same
    test images.
    """

    images: int
    methods: tuple[MethodLayers, ...]
    cka: Likeness | None
    embedding: Embedding
    class_names: tuple[str, ...]
    training_images: int | None = None

    @property
    def separated(self) -> str:
        """In words, which images class separation, spectra and distances are of."""
        if self.training_images is None:
            return f"{self.images} test images"
        return f"{self.training_images} training images"


# -- beyond the test set ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MethodAccuracy:
    name: str
    accuracy: Estimated


@dataclass(frozen=True)
class Against:
    """(something of the run, its accuracy) of each run, and the rank correlation of the means of so many methods."""

    runs: dict[str, Matrix]
    rank_correlation: Number
    methods: int


@dataclass(frozen=True)
class Transfer:
    """Another task: on how many images a linear classifier was trained and tested.

    Beside its accuracy, the class separation of the run's features and the run's accuracy on its own test set.
    """

    task: str
    train: int
    test: int
    methods: tuple[MethodAccuracy, ...]
    separation: Against | None = None
    own_accuracy: Against | None = None


@dataclass(frozen=True)
class MethodElsewhere:
    """The study's metric there, and on its own test images of the same classes; the accuracy there."""

    name: str
    score: Estimated
    own_score: Estimated
    accuracy: Estimated


@dataclass(frozen=True)
class FurtherImages:
    folder: str
    metric: str
    images: int
    classes: int
    methods: tuple[MethodElsewhere, ...]


@dataclass(frozen=True)
class MethodCorrupted:
    """Error rates: clean, by severity with the clean ones first, and of each corruption at each severity."""

    name: str
    clean: Estimated
    mce: Estimated
    by_severity: tuple[Estimated, ...]
    errors: dict[str, tuple[Estimated, ...]]


@dataclass(frozen=True)
class Corruptions:
    """`baseline` is whose errors count as 100; `folder` has the images, None if they were made of the test images."""

    images: int
    baseline: str
    methods: tuple[MethodCorrupted, ...]
    folder: str | None = None


# -- weights ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MethodWeights:
    """The weight of each class, and its effective number of images where the weighting has one."""

    name: str
    weighting: str
    weights: Row
    effective: Row | None


@dataclass(frozen=True)
class ClassWeights:
    counts: tuple[int, ...]
    methods: tuple[MethodWeights, ...]


@dataclass(frozen=True)
class MethodAlpha:
    """The validation metric at each example weight, and the best weight of each run."""

    name: str
    metric: str
    curve: tuple[Estimated, ...]
    best: Row


@dataclass(frozen=True)
class ExampleWeights:
    alphas: tuple[float, ...]
    images: int
    methods: tuple[MethodAlpha, ...]


# -- all of it -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Analysis(Filled):
    """All parts; one that was not asked for, or could not be measured, is None or empty."""

    made_by: str
    study: str
    question: str
    baseline: str
    asked_images: int
    problems: tuple[Problem, ...] = ()
    predictions: Predictions | None = None
    weights: ClassWeights | None = None
    representations: Representations | None = None
    transfer: tuple[Transfer, ...] = ()
    further: tuple[FurtherImages, ...] = ()
    corruptions: Corruptions | None = None
    imagenet_c: Corruptions | None = None
    alpha: ExampleWeights | None = None

    FILE = "analysis.json"

    @classmethod
    def part(cls, name: str, plain: Mapping[str, Any]) -> Any:
        """One field alone: what is wrong with another part does not matter to it."""
        return getattr(filled(cls, {field: plain[field] for field in (*HEAD, name) if field in plain}), name)


HEAD = ("made_by", "study", "question", "baseline", "asked_images")  # what every analysis says of itself
