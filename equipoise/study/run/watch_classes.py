"""What happens to the classes while a network is trained, recorded at a few epochs for a small part of the time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from ...analysis import classification_ratio, feature_deviation, feature_gradient_norms, per_class_accuracy
from ...data import Split
from ...models import Network, PlanarHead
from ...norms import output_range
from ...train import Run

MOMENTS = 5, 20  # epochs at which a training is looked at, at least and at most
SHARE = 0.07  # of the training's time is for looking; more only where so few images give no curve
FORWARD = 0.3  # of the time that an image takes in training is that of its forward pass
LEAST = 10  # images of a class that are looked at, where it has them
CHUNK = 512


class Progress:
    """Looks at a run after some of its epochs; what it sees is in `seen`, one tensor for each moment.

    Quantities, of a fixed part of the training images: `classification_ratio`, `train_accuracy` and `gradient_norm`
    (of the loss with respect to the features) for each class (C,); `feature_deviation` (C,) from the validation
    features; `norm_range` (norms, 3): the farthest outputs in training and in inference, and the bound of training.
    With a planar head also its `points`, and the `plane_weight` and `plane_bias` that divide the plane. The run goes
    on as if nobody had looked.
    """

    def __init__(self, run: Run) -> None:
        self.run, train = run, run.task.train
        moments, share = _within_budget(run)
        self.moments = {round(float(e)) for e in np.linspace(run.plan.epochs, 1, moments)}  # if one only, the last
        self.part = train.take(_part(train.labels, share))
        self.seen: dict[str, list[Tensor]] = {}

    def after_epoch(self, epoch: int) -> None:
        """Look, if this is one of the moments."""
        if epoch not in self.moments:
            return
        streams = self.run.streams.state_dict()  # a pass in training mode draws random numbers
        for name, value in {"epoch": torch.tensor(epoch), **self._look()}.items():
            self.seen.setdefault(name, []).append(value.cpu())
        self.run.streams.load_state_dict(streams)

    def arrays(self) -> dict[str, np.ndarray]:
        """What was seen, moments first."""
        return {name: torch.stack(values).numpy() for name, values in self.seen.items()}

    def state_dict(self) -> dict[str, list[Tensor]]:
        return self.seen

    def load_state_dict(self, state: dict[str, list[Tensor]]) -> None:
        self.seen = state

    def _look(self) -> dict[str, Tensor]:
        run, num_classes = self.run, self.run.task.num_classes
        network = run.evaluated.eval()
        features, logits, gradients = (torch.cat(column) for column in zip(*self._passes(), strict=True))
        labels, pred = self.part.labels, logits.argmax(dim=1)
        seen = {
            "classification_ratio": classification_ratio(pred, labels, num_classes),
            "train_accuracy": per_class_accuracy(pred, labels, num_classes),
            "gradient_norm": feature_gradient_norms(gradients, labels, num_classes),
        }
        if len(run.task.valid):
            with torch.no_grad():
                valid = torch.cat([_features(network, x) for x in self._inputs(run.task.valid)])
            deviation = feature_deviation(features, labels, valid, run.task.valid.labels)
            missing = deviation.new_full((num_classes - len(deviation),), torch.nan)
            seen["feature_deviation"] = torch.cat([deviation, missing])
        ranges = self._norm_ranges(network)
        if isinstance(network.head, PlanarHead):
            classes = network.head.classes
            seen |= {"points": network.head.points(features), "labels": labels}
            seen |= {"plane_weight": classes.weight.clone(), "plane_bias": classes.bias.clone()}
        return {name: value.detach() for name, value in (seen | ranges).items()}

    def _passes(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Features, logits, and the gradient of each sample's loss with respect to its features."""
        network, loss, labels = self.run.evaluated, self.run.objective.loss, self.part.labels.split(CHUNK)
        for x, target in zip(self._inputs(self.part), labels, strict=True):
            with torch.no_grad():
                features = _features(network, x)
            with torch.enable_grad():
                leaf = features.clone().requires_grad_()
                logits = network.head(leaf)
                (gradient,) = torch.autograd.grad(loss.per_sample(logits, target).sum(), leaf)
            yield features, logits.detach(), gradient

    def _inputs(self, split: Split) -> Iterator[Tensor]:
        return (self.run.inputs(images.to(self.run.device)) for images in split.images.split(CHUNK))

    def _norm_ranges(self, network: nn.Module) -> dict[str, Tensor]:
        batch = self.part.images[torch.arange(min(self.run.part_size, len(self.part)))].to(self.run.device)
        try:
            ranges = output_range(network, [self.run.inputs(batch)])
        except ValueError:  # it has no norm
            return {}
        farthest = [(max(map(abs, r.training)), max(map(abs, r.inference)), r.bound) for r in ranges]
        return {"norm_range": torch.tensor(farthest)}


def _features(network: Network, x: Tensor) -> Tensor:
    features = network.output(x).features
    assert features is not None, "our networks all give features"
    return features.float()


def _within_budget(run: Run) -> tuple[int, float]:
    """How often the time allows to look, and then at what share of the training images.

    A look costs the forward passes of the part and of the validation images, and what does not depend on them, about
    four batches of training.
    """
    train, fixed = len(run.task.train), FORWARD * len(run.task.valid) + 4 * run.batch_size
    budget = SHARE * run.plan.epochs * train  # in images of training
    least = FORWARD * len(_part(run.task.train.labels, 0))
    moments = min(run.plan.epochs, max(MOMENTS[0], min(MOMENTS[1], int(budget / (fixed + least)))))
    return moments, min(1.0, max(0.0, (budget / moments - fixed) / (FORWARD * train)))


def _part(labels: Tensor, share: float) -> Tensor:
    """The first `share` of each class's samples, and at least `LEAST` of each that has them."""
    order = labels.argsort(stable=True).cpu()
    rows = []
    for one in order.split(torch.bincount(labels).tolist()):
        rows.append(one[: max(round(share * len(one)), LEAST)])
    return torch.cat(rows).sort().values
