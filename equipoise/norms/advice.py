"""The guidance of the paper on four things about batch norm, as functions: what to choose, and all of it at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from ..core import checks
from .decay import decay_groups
from .example_weighing.example_weight import set_example_weight
from .example_weighing.tune import TunedWeight, tune_example_weight
from .surgery import NormFactory, replace_norm

__all__ = ["FourThings", "NormAdvice", "advise_norm", "four_things"]


@dataclass(frozen=True)
class NormAdvice:
    """What to start from. `norm` and `alternatives` are texts for a recipe, `create_model` or `replace_norm`."""

    norm: str
    alternatives: tuple[str, ...]
    affine_decay: bool
    tune_example_weight: bool
    reasons: tuple[str, ...]


def advise_norm(
    batch_size: int, *, residual: bool = True, overfits: bool = True, independent: bool = True
) -> NormAdvice:
    """The norm, and the decay of γ and β, that the paper's experiments speak for.

    Args:
        batch_size: examples that a norm sees at once: of one process, if there are several.
        residual: whether the network has skip connections; `unshielded_affine` tells in doubt.
        overfits: whether it does much better on training data than on validation data.
        independent: False for batches whose examples resemble each other, such as a few classes each.

    >>> advise_norm(128).norm, advise_norm(2).norm, advise_norm(1).norm
    ('ghost(ghost_size=16)', 'batch_group', 'group')

    Reference: Summers, Dinneen. Four Things Everyone Should Know to Improve Batch Normalization. ICLR 2020.
    """
    checks.whole("batch_size", batch_size, 1)
    norm, alternatives, reason = _choose(batch_size, overfits, independent)
    affine = residual and overfits
    return NormAdvice(
        norm,
        alternatives,
        affine_decay=affine,
        tune_example_weight=True,
        reasons=(
            reason,
            "decay of γ and β gave ResNets 0.3 to 0.9 points (CIFAR-100, Caltech-256)"
            if affine
            else "decay of γ and β did nothing without overfitting (SVHN), and harm without skip connections",
            "the example weight, tuned on validation data, helped every network it was tried on",
        ),
    )


def _choose(batch_size: int, overfits: bool, independent: bool) -> tuple[str, tuple[str, ...], str]:
    ghosts = [f"ghost(ghost_size={2**k})" for k in range(1, 8) if 2**k < batch_size]
    if batch_size == 1:
        return "group", (), "one example has no batch to share statistics with"
    if not independent:
        reason = "with four classes in a batch it had 76.1 % where ghost batch norm had 72.2 and batch norm 62.2"
        return "batch_group", tuple(ghosts), reason
    if batch_size < 4:
        if overfits:
            return (
                "batch_group",
                ("group",),
                "with pairs it beat group norm by 0.7 and 5 points (CIFAR-100, Caltech-256)",
            )
        return "group", ("batch_group",), "the noise of pairs regularizes, which SVHN did not want"
    if not overfits:
        return "batch", tuple(ghosts), "smaller ghosts regularize, which gave nothing on SVHN"
    start = f"ghost(ghost_size={min(16, max(2, batch_size // 2))})"
    others = tuple(g for g in ghosts if g != start)
    return start, (*others, "batch"), "ghosts gave up to 0.8 and 5.8 points (CIFAR-100, Caltech-256); tune their size"


@dataclass(frozen=True)
class FourThings:
    """A network prepared for training, and what is left to do before and after it."""

    network: nn.Module = field(repr=False)
    norm: str | NormFactory
    replaced: tuple[str, ...]
    param_groups: list[dict[str, Any]] = field(repr=False)

    def finish(self, batches: Iterable[Sequence[Tensor]], metric: str = "accuracy", **options: Any) -> TunedWeight:
        """After training: find the example weight on validation data and set it."""
        alpha = tune_example_weight(self.network, batches, metric, **options)
        set_example_weight(self.network, alpha)
        return alpha


def four_things(
    network: nn.Module,
    batch_size: int,
    weight_decay: float,
    *,
    norm: str | NormFactory | None = None,
    final: float = 0.0,
) -> FourThings:
    """All four together, on any network with batch norms, in place.

    Ghost batch norm, or batch-group norm where batches are very small (the choice of `advise_norm`, or `norm`), in
    the place of its batch norms; parameter groups in which γ and β decay; and, when training is over, `finish` tunes
    the example weight::

        things = four_things(network, batch_size=128, weight_decay=5e-4)
        optimizer = torch.optim.SGD(things.param_groups, lr=0.1, momentum=0.9)
        ...
        things.finish(validation_batches)

    Args:
        network: any module with batch norms.
        batch_size: examples that a norm sees at once.
        weight_decay: for all parameters but a prior bias.
        norm: a norm to use instead, as for `replace_norm`.
        final: decay added on the last layer's weight.

    Reference: Summers, Dinneen. Four Things Everyone Should Know to Improve Batch Normalization. ICLR 2020.
    """
    norm = norm or advise_norm(batch_size).norm
    replaced = replace_norm(network, norm)
    return FourThings(network, norm, tuple(replaced), decay_groups(network, weight_decay, final=final))
