"""What happens to the classes while a network is trained, recorded at a few epochs for a small part of the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...analysis import classification_ratio, feature_deviation, feature_gradient_norms, per_class_accuracy
from ...data import Split
from ...models import Network, PlanarHead
from ...norms.output_range import output_range
from ...train import Run

MOMENTS = 5, 20  # epochs at which a training is looked at, at least and at most
SHARE = 0.07  # of the training's time is for looking; more only where so few moments give no curve
FORWARD, BACKWARD = 0.3, 0.35  # of the time that an image takes in training; backward to a layer, without weights
MOST = 100_000  # images of train and of test that are looked at; of larger sets a share of each class
LEAST = 10  # images of a class that are looked at even then, where it has them
POINTS = 500  # images of a class whose points in the plane are kept
CHUNK = 512  # images at a time, where nothing is kept of them for a backward pass
LEAST_CHUNK = 64  # and at least so many where it is: no more than training takes at a time, whose memory suffices
MIXED = ("stage1", "layer1")  # where features are mixed by default, in our networks and in those of torchvision


class Progress:
    """Looks at a run after some of its epochs; what it sees is in `seen`, one tensor for each moment.

    Quantities, of the training images in evaluation mode: `classification_ratio` and `train_accuracy` of each class
    (C,); `mixed_layer_gradient` (C,), the mean length of the gradient of a sample's unmixed loss with respect to what
    `site` puts out; `norm_range` (norms, 3): the farthest outputs in training and in inference, and the bound of
    training. With a planar head also its `points`, and the `plane_weight` and `plane_bias` that divide the plane.

    What test images are needed for is in `sealed`, which nobody may look at before the test set is opened:
    `feature_deviation` (C,) of the training from the test features, and the `points` of test images in the plane.

    The run goes on as if nobody had looked.

    Reference: Ye, Zhan, Chao. Procrustean Training for Imbalanced Deep Learning. ICCV 2021, figures 1 and 3 to 8.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.part, self.test = _part(run.task.train), _part(run.task.test)
        self.site = _site(run)
        # if there is one moment only, it is the last epoch
        self.moments = {round(float(e)) for e in np.linspace(run.plan.epochs, 1, self._moments_within_budget())}
        self.seen: dict[str, list[Tensor]] = {}
        self.sealed: dict[str, list[Tensor]] = {}

    def after_epoch(self, epoch: int) -> None:
        """Look, if this is one of the moments."""
        if epoch not in self.moments:
            return
        streams = self.run.streams.state_dict()  # a pass in training mode draws random numbers
        seen, sealed = self._look()
        for kept, latest in ((self.seen, {"epoch": torch.tensor(epoch), **seen}), (self.sealed, sealed)):
            for name, value in latest.items():
                kept.setdefault(name, []).append(value.detach().cpu())
        self.run.streams.load_state_dict(streams)

    def arrays(self) -> dict[str, np.ndarray]:
        """What was seen, moments first."""
        return _stacked(self.seen)

    def sealed_arrays(self) -> dict[str, np.ndarray]:
        """What was seen of test images, moments first; empty where the task has none."""
        return _stacked(self.sealed)

    def state_dict(self) -> dict[str, dict[str, list[Tensor]]]:
        return {"seen": self.seen, "sealed": self.sealed}

    def load_state_dict(self, state: dict[str, dict[str, list[Tensor]]]) -> None:
        self.seen, self.sealed = state["seen"], state["sealed"]

    def _moments_within_budget(self) -> int:
        """How often the time allows to look, in images of training.

        A look costs the passes of both parts, and what does not depend on them, about four batches of training.
        """
        plan, train = self.run.plan, len(self.run.task.train)
        cost = (FORWARD + BACKWARD) * len(self.part) + FORWARD * len(self.test) + 4 * self.run.batch_size
        within = int(SHARE * plan.epochs * train / cost)
        return min(plan.epochs, max(MOMENTS[0], min(MOMENTS[1], within)))

    def _look(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """What is seen, and what is seen and sealed."""
        num_classes, labels = self.run.task.num_classes, self.part.labels
        network = self.run.evaluated.eval()
        features, logits, gradients = (torch.cat(column) for column in zip(*self._passes(), strict=True))
        pred = logits.argmax(dim=1)
        seen = {
            "classification_ratio": classification_ratio(pred, labels, num_classes),
            "train_accuracy": per_class_accuracy(pred, labels, num_classes),
            "mixed_layer_gradient": feature_gradient_norms(gradients[:, None], labels, num_classes),
            **self._norm_ranges(network),
        }
        sealed = {}
        if len(self.test):
            with torch.no_grad():
                test = torch.cat([_features(network, x) for x in self._inputs(self.test)])
            deviation = feature_deviation(features, labels, test, self.test.labels)
            missing = deviation.new_full((num_classes - len(deviation),), torch.nan)
            sealed["feature_deviation"] = torch.cat([deviation, missing])
        if isinstance(network.head, PlanarHead):
            classes = network.head.classes
            seen |= {"plane_weight": classes.weight.clone(), "plane_bias": classes.bias.clone()}
            seen |= _points(network.head, features, labels)
            if len(self.test):
                sealed |= _points(network.head, test, self.test.labels)
        return seen, sealed

    def _passes(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Features, logits, and for each sample the length of its loss's gradient with respect to what `site` gives."""
        network, loss = self.run.evaluated, self.run.objective.loss
        chunk = min(CHUNK, max(LEAST_CHUNK, self.run.part_size))
        for x, target in zip(self._inputs(self.part, chunk), self.part.labels.split(chunk), strict=True):
            with torch.enable_grad(), _leaf_after(network.get_submodule(self.site)) as leaves:
                out = network.output(x)
                total = loss.per_sample(out.logits, target).sum()  # of a mean every gradient would have its 1/N
                (gradient,) = torch.autograd.grad(total, leaves)
            assert out.features is not None, "our networks all give features"
            yield out.features.detach().float(), out.logits.detach(), gradient.flatten(1).norm(dim=1)

    def _inputs(self, split: Split, chunk: int = CHUNK) -> Iterator[Tensor]:
        return (self.run.inputs(images.to(self.run.device)) for images in split.images.split(chunk))

    def _norm_ranges(self, network: nn.Module) -> dict[str, Tensor]:
        batch = self.part.images[torch.arange(min(self.run.part_size, len(self.part)))].to(self.run.device)
        try:
            ranges = output_range(network, [self.run.inputs(batch)])
        except ValueError:  # it has no norm
            return {}
        # features pass through no norm of the frozen network that they come from
        passed = [r for r in ranges if not r.inference[0] > r.inference[1]]
        farthest = [(max(map(abs, r.training)), max(map(abs, r.inference)), r.bound) for r in passed]
        return {"norm_range": torch.tensor(farthest)} if farthest else {}


def _features(network: Network, x: Tensor) -> Tensor:
    features = network.output(x).features
    assert features is not None, "our networks all give features"
    return features.float()


def _site(run: Run) -> str:
    """The layer whose gradients are looked at: where the run mixes, else where a mixing would by default."""
    if run.mix is not None and run.mix.site != "input":
        return str(run.mix.site)
    stages = run.evaluated.stages
    return next((name for name in stages if name.rpartition(".")[2] in MIXED), stages[0])


@contextmanager
def _leaf_after(module: nn.Module) -> Iterator[list[Tensor]]:
    """Within the block, what `module` puts out starts a graph of its own; the list has it."""
    leaves: list[Tensor] = []

    def begin(module: nn.Module, args: Any, out: Tensor) -> Tensor:
        leaves.append(out.detach().requires_grad_())
        return leaves[-1]

    with module.register_forward_hook(begin):
        yield leaves


def _points(head: PlanarHead, features: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Where images lie in the plane, at most `POINTS` of each class, and their labels."""
    rows = _first_of_each(labels, lambda n: POINTS).to(labels.device)
    return {"points": head.points(features[rows]), "labels": labels[rows]}


def _part(split: Split) -> Split:
    """All images, or of more than `MOST` a share of each class and at least `LEAST`, where it has them."""
    if len(split) <= MOST:
        return split
    share = MOST / len(split)
    return split.take(_first_of_each(split.labels, lambda n: max(round(share * n), LEAST)))


def _first_of_each(labels: Tensor, most: Callable[[int], int]) -> Tensor:
    """Rows of the first `most(n)` of the n samples of each class, in order."""
    order = labels.argsort(stable=True).cpu()
    classes = order.split(torch.bincount(labels).tolist())
    return torch.cat([rows[: most(len(rows))] for rows in classes]).sort().values


def _stacked(kept: dict[str, list[Tensor]]) -> dict[str, np.ndarray]:
    return {name: torch.stack(values).numpy() for name, values in kept.items()}
