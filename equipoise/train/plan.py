"""`Plan`: how long and how fast a network is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_type_hints

from ..core import EquipoiseError, Spec, checks
from ..core.annotations import fitted
from ..models.weights import with_content

PRECISIONS = ("float32", "bf16")
OPTIMIZERS = ("sgd", "adamw")
# by what is trained; a linear head on many features learns its images by heart unless it is held back
# (docs/results/frozen_network.md)
USUAL_DECAY = {"all": 2e-4, "head": 0.02}

MOST_EPOCHS = 100_000
LARGEST_BATCH = 1_000_000
MOST_STEPS = 100_000_000  # each has its learning rate in a table: 0.8 GB


@dataclass(frozen=True)
class Plan:
    """Optimizer, schedule, decay and averaging of one run. Every default is the CIFAR recipe of the papers.

    `warmup` is in epochs; None means 5, or a sixth of a short training. `weight_decay` multiplies ½‖w‖²; None means
    2e-4, or 0.02 where a head alone is trained. `affine_decay=False` spares the γ and β of norms, `affine_towards=1`
    lets γ decay to 1 instead of 0; `final_decay` is added on the head's weight. `ema` averages the weights with this
    decay and evaluates the average. `accumulate` sends each batch through the network in so many equal parts, which
    takes as much less memory: the step is that of the whole batch, except that norms, mixings and the bias weighting
    see one part at a time. `weights` is a file to start from (`create_model`); what the file holds is kept with its
    name, so that another file is another run.

    `optimizer` may be "adamw": `momentum` is then β₁ (β₂ is 0.999), and a step shrinks weights by lr · `weight_decay`
    of themselves. `layer_decay` multiplies the learning rate once for each stage that lies between a weight and the
    head, the weight's own included. `train="head"` leaves a pretrained network as it is and trains a head on its
    features, which are made once for all runs: no image is augmented.
    """

    epochs: int = 200
    batch_size: int = 128
    lr: float = 0.1
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float | None = None
    affine_decay: bool = True
    affine_towards: int = 0
    final_decay: float = 0.0
    warmup: float | None = None
    schedule: str = "cosine"
    ema: float | None = None
    precision: str = "float32"
    accumulate: int = 1
    weights: str | None = None
    optimizer: str = "sgd"
    layer_decay: float = 1.0
    train: str = "all"

    def __post_init__(self) -> None:
        for name, annotation in get_type_hints(Plan).items():
            object.__setattr__(self, name, fitted(name, getattr(self, name), annotation))
        checks.whole("epochs", self.epochs, 1, MOST_EPOCHS)
        checks.whole("batch_size", self.batch_size, 1, LARGEST_BATCH)
        checks.above("lr", self.lr, 0)
        checks.between("momentum", self.momentum, 0, 0.9999)
        checks.one_of("train", self.train, tuple(USUAL_DECAY))
        if self.weight_decay is None:
            object.__setattr__(self, "weight_decay", USUAL_DECAY[self.train])
        checks.at_least("weight_decay", self.weight_decay, 0)
        checks.at_least("final_decay", self.final_decay, 0)
        checks.one_of("precision", self.precision, PRECISIONS)
        checks.whole("accumulate", self.accumulate, 1)
        if self.batch_size % self.accumulate:
            raise ValueError(
                f"accumulate must cut batches into equal parts: {self.accumulate} does not divide {self.batch_size}"
            )
        if self.affine_towards not in (0, 1):
            raise ValueError(f"affine_towards must be 0 or 1, not {self.affine_towards!r}")
        self._check_optimizer()
        if self.nesterov and self.momentum == 0:
            raise ValueError("nesterov needs a momentum above 0")
        if self.warmup is None:
            object.__setattr__(self, "warmup", min(5.0, self.epochs / 6))
        if checks.at_least("warmup", self.warmup, 0) >= self.epochs:
            raise ValueError(f"warmup must be shorter than the {self.epochs} epochs of training, not {self.warmup!r}")
        if self.weights is not None:
            object.__setattr__(self, "weights", with_content(checks.text("weights", self.weights)))
        if self.ema is not None:
            checks.between("ema", self.ema, 0, 0.999999)
        try:
            object.__setattr__(self, "schedule", _checked_schedule(self.schedule, self.epochs))
        except EquipoiseError as error:
            raise ValueError(f"schedule: {error}") from error

    def _check_optimizer(self) -> None:
        checks.one_of("optimizer", self.optimizer, OPTIMIZERS)
        if not 0 < self.layer_decay <= 1:
            raise ValueError(f"layer_decay must be above 0 and at most 1, not {self.layer_decay!r}")
        if self.train == "head" and self.layer_decay != 1:
            raise ValueError('layer_decay is for train = "all": with train = "head" no layer but the head is trained')
        if self.optimizer == "adamw" and (self.nesterov or self.affine_towards):
            raise ValueError('nesterov and affine_towards = 1 are for optimizer = "sgd": leave them out with "adamw"')

    def check_length(self, images: int) -> None:
        """Refuse more parts than there are training images, and more steps than a table of their rates can have."""
        if images < self.accumulate:
            raise EquipoiseError(f"{images:,} training images cannot be accumulated over {self.accumulate:,} parts")
        steps = self.epochs * max(1, images // self.batch_size)
        if steps > MOST_STEPS:
            raise EquipoiseError(
                f"{self.epochs:,} epochs of {images:,} images in batches of {self.batch_size:,} are {steps:,} steps, "
                f"and no more than {MOST_STEPS:,} can be planned: lower epochs or raise batch_size"
            )


def _checked_schedule(text: str, epochs: int) -> str:
    """The schedule's text with defaults filled in; its factors are numbers from the first epoch to the last."""
    spec = Spec.parse(text).resolved("schedule")
    schedule = spec.build("schedule", epochs=epochs)
    for epoch in (0.0, float(epochs)):
        try:
            checks.number(f"the learning rate's factor after {epoch:.0f} epochs", schedule(epoch))
        except OverflowError:
            raise EquipoiseError(f"with {spec} the learning rate grows past every number in {epochs} epochs") from None
    return str(spec)
