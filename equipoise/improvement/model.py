"""An improved network as a `TrainedModel`, for `equipoise predict` and `equipoise export`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from .. import __version__
from ..analysis import METRICS
from ..core import EquipoiseError, Spec
from ..deploy import Calibration, Description, Preprocessing, Score, TrainedModel, all_weights
from ..norms.kernels.modes import in_mode
from ..train import Recipe
from .affine import CorrectedLogits
from .images import Images
from .improvement import LABELS, Improvement
from .networks import Origin
from .outputs import device_of

LICENCE = "It is a corrected copy of a trained network, whose licence holds for it too."
CLOSE = 1e-3  # of probabilities


def model_of(improvement: Improvement, origin: Origin, data: Path, counts: Sequence[int] | None) -> TrainedModel:
    """The improved network with all that is needed to use it; an error says why it cannot be kept so.

    `data` is the folder of the held-out images, `counts` are the training images of each class; where those are not
    known, classes are taken to be as frequent as in the held-out data.
    """
    chosen, images = improvement.chosen, improvement.images
    if origin.model is None:
        raise EquipoiseError("its network is none of equipoise's, which are made again by their names")
    if chosen is None or images is None or isinstance(improvement.network, CorrectedLogits):
        raise EquipoiseError("its last layer cannot hold the correction")
    posthoc = None if chosen.alpha is None else f"example_weighing(alpha={chosen.alpha!r})"
    task = str(Spec("folder", (("path", data.resolve().name), ("size", images.size), ("resize", images.resize))))
    fitted_on, weights = improvement.fitted_on, all_weights(improvement.network)
    seen = torch.bincount(fitted_on.labels, minlength=len(improvement.class_names))
    class_counts = (seen if counts is None else torch.tensor(counts)).clamp_min(1)
    description = Description(
        study="",
        question="",
        method=chosen.name,
        seed=improvement.seed,
        metric=improvement.metric,
        verdict=improvement.sentence,
        class_names=improvement.class_names,
        class_counts=tuple(class_counts.tolist()),
        preprocessing=Preprocessing(images.frame, images.channels, images.mean, images.std),
        calibration=Calibration.fit(fitted_on.logits, fitted_on.labels, class_counts),
        recipe=Recipe.make({"model": origin.model, "posthoc": posthoc}, {"name": task}).to_dict(),
        fitted={},
        scores=_scores(improvement),
        recalls=(),
        parameters=sum(parameter.numel() for parameter in improvement.network.parameters()),
        versions={"equipoise": __version__, "torch": torch.__version__},
        fingerprint="",
        content=None,
        licence=LICENCE,
    )
    model = TrainedModel(description, weights)
    _check_same(model, improvement, images)
    return model


def _scores(improvement: Improvement) -> dict[str, Score]:
    """Of the corrected network, on the half that was judged on."""
    return {
        name: Score.of(LABELS[name], METRICS[name].unit, 1, score.after.value, score.after.low, score.after.high)
        for name, score in improvement.scores.items()
    }


@torch.no_grad()
def _check_same(model: TrainedModel, improvement: Improvement, images: Images) -> None:
    """Refuse a model that does not say what the improved network says of images."""
    some = torch.randint(256, (8, *model.preprocessing.shape), generator=torch.Generator().manual_seed(0))
    pixels = some.to(torch.uint8)
    network = improvement.network
    with in_mode(network, training=False):
        theirs = network(images.inputs(pixels).to(device_of(network))).cpu()
    apart = float((theirs.softmax(1) - model.classifier(pixels).softmax(1)).abs().max())
    if not apart < CLOSE:
        raise EquipoiseError(f"made again from its name and weights, its probabilities differ by {apart:.2g}")
