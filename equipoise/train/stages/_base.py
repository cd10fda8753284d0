"""What second stages share: they continue from a trained network whose backbone no longer moves."""

from __future__ import annotations

from dataclasses import replace

from torch import nn

from ...core import checks
from ...models import Network
from ..plan import Plan


class Stage:
    """Trains only the head of a trained network, on class-balanced batches. A subclass writes `renew`.

    The backbone is frozen: its weights get no gradient, and its norms keep their statistics, since the balanced
    batches of this stage would move them away from what the backbone was trained with.
    """

    sampler = "class_balanced"

    def __init__(self, epochs: int, lr: float, weight_decay: float) -> None:
        self.epochs = checks.whole("epochs", epochs, 1)
        self.lr = checks.above("lr", lr, 0)
        self.weight_decay = checks.at_least("weight_decay", weight_decay, 0)

    def renew(self, head: nn.Module) -> nn.Module:
        """The head that this stage trains, made from the trained one."""
        raise NotImplementedError

    def plan(self, first: Plan) -> Plan:
        """The first stage's plan with this stage's length, rate and decay: SGD, down along a cosine without warm-up."""
        return replace(
            first,
            epochs=self.epochs,
            lr=self.lr,
            weight_decay=self.weight_decay,
            final_decay=0.0,
            warmup=0.0,
            schedule="cosine",
            optimizer="sgd",
            layer_decay=1.0,
        )

    def prepare(self, network: Network) -> None:
        """Freeze the backbone and put the renewed head in place."""
        network.requires_grad_(False)
        network.head = self.renew(network.head)

    def freeze(self, network: Network) -> None:
        """Keep the backbone's norms and dropout as at test time; only the head is in training mode."""
        network.eval()
        network.head.train()
