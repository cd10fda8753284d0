"""What is called: a loss or a norm with random parameters, beside its formula and PyTorch's own layer."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from equipoise import core

from .tensors import Named
from .ways import Function


class Subject(NamedTuple):
    """A loss or a norm, what PyTorch has of its kind, and an input; `exact` is the subject for float64."""

    name: str
    ours: Function
    exact: Function
    plain: Function  # `ours` once more, with a state of its own
    pytorchs: Function
    x: Tensor
    state: Callable[[], list[tuple[Tensor, Tensor]]]  # buffers after the call, as they are and as they should be
    rounding: dict[torch.dtype, float]  # how far a result may be off, as a share of the largest


# a loss that is not named here is drawn with the first of its examples
LOSS_PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "cdt": [{"gamma": 0.0}, {"gamma": 0.5}],
    "equalization": [{"gamma": 1.0, "threshold": 0.05}, {"gamma": 0.0}],  # nothing is left to chance
    "focal": [{"gamma": 0.5}, {"gamma": 2.0}, {"gamma": 3.0}],
    "label_smoothing": [{"alpha": 0.0}, {"alpha": 0.3}],
    "ldam": [{}, {"scale": 1.0}],
    "logit_adjusted": [{"tau": 0.0}, {"tau": 2.0}],
    "logit_norm": [{}, {"tau": 1.0}],
    "sigmoid_focal": [{"gamma": 0.0}, {"gamma": 2.0}],
    "squared_error": [{}, {"kappa": 1.0, "magnitude": 1.0}],
}
HALVES = {torch.bfloat16: 2**-6, torch.float16: 2**-9}  # up to four roundings on the way
LABELS: list[Callable[[Tensor], Tensor]] = [
    lambda y: y,
    lambda y: y.int(),
    lambda y: y.to(torch.uint8),
    lambda y: torch.stack([y, y], 1)[:, 0],
    lambda y: torch.cat([y[:1], y])[1:],
    lambda y: y.as_subclass(Named),
    lambda y: y[:1].expand(len(y)),
]


def pick(rng: np.random.Generator, choices: Any) -> Any:
    choices = list(choices)
    return choices[rng.integers(len(choices))]


def drawn_loss(rng: np.random.Generator) -> Subject:
    card = pick(rng, core.cards("loss"))
    n, c = int(pick(rng, [0, 1, 2, 7, 65, 200])), int(pick(rng, [2, 3, 10, 16, 63, 64, 65, 300]))
    facts = {"class_counts": rng.integers(1, 900, c).tolist()} if card.facts else {}
    parameters = pick(rng, LOSS_PARAMETERS.get(card.name, card.examples[:1]))
    loss = card.factory(**facts, **parameters, reduction=pick(rng, ["mean", "sum", "none"]))
    logits = torch.from_numpy(rng.normal(0, pick(rng, [0.5, 3.0]), (n, c)).astype(np.float32))
    target = pick(rng, LABELS)(torch.from_numpy(rng.integers(0, c, n)))
    plain = target.as_subclass(Tensor).long().contiguous()

    def ours(z: Tensor) -> Tensor:
        return loss(z, target.to(z.device) if z.is_meta else target)

    def pytorchs(z: Tensor) -> Tensor:
        labels = target if target.dtype is torch.int64 else plain  # it takes no other type
        labels = labels.to(z.device) if z.is_meta else labels
        if card.name in ("squared_error", "sigmoid", "sigmoid_focal"):
            one_hot = torch.zeros_like(z).scatter_(1, labels[:, None], 1)
            theirs = F.mse_loss if card.name == "squared_error" else F.binary_cross_entropy_with_logits
            return theirs(z, one_hot, reduction=loss.reduction)
        return F.cross_entropy(z, labels, reduction=loss.reduction)

    exact = copy.deepcopy(loss)
    rounding = HALVES | {torch.float64: 1e-9, torch.float32: 2e-5}
    return Subject(card.name, ours, lambda z: exact(z, plain), ours, pytorchs, logits, list, rounding)


def drawn_norm(rng: np.random.Generator) -> Subject:
    card = pick(rng, core.cards("norm"))
    n, c = int(pick(rng, [2, 3, 8, 17])), int(pick(rng, [2, 6, 8, 33]))
    positions = pick(rng, [(), (5,), (4, 4), (1, 1), (3, 2), (2, 2, 3)])
    x = rng.normal(pick(rng, [0.0, 3.0]), 1.0, (n, c, *positions)).astype(np.float32)
    norm, exact = card.factory(c), card.factory(c).double()
    weight, bias, mean, var = (torch.from_numpy(rng.uniform(0.5, 1.5, c).astype(np.float32)) for _ in range(4))
    example_weight, training = float(pick(rng, [0.0, 0.3, 1.0])), bool(rng.integers(2))
    for module in (norm, exact):
        nn.utils.vector_to_parameters(torch.cat([weight, bias]).to(module.weight.dtype), module.parameters())
        module.set_moving(mean.to(module.weight.dtype), var.to(module.weight.dtype))
        module.example_weight = example_weight
        module.train(training)
    weight, bias, moving = nn.Parameter(weight), nn.Parameter(bias), mean.clone()

    def pytorchs(z: Tensor) -> Tensor:
        if not training:
            return F.batch_norm(z, mean, var, weight, bias)
        y = F.batch_norm(z, None, None, weight, bias, training=True)
        moving.lerp_(z.detach().transpose(0, 1).flatten(1).mean(1).to(moving.dtype), 0.1)
        return y

    def state() -> list[tuple[Tensor, Tensor]]:
        there = dict(exact.named_buffers())
        return [(b, there[name]) for name, b in norm.named_buffers() if b.is_floating_point() and name != "square_rest"]

    # the moving averages are float32, whatever comes in
    rounding = HALVES | {torch.float64: 1e-6, torch.float32: 2e-4}
    return Subject(card.name, norm, exact, copy.deepcopy(norm), pytorchs, torch.from_numpy(x), state, rounding)
