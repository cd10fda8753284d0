"""Mixup whose labels favour the rarer class."""

from __future__ import annotations

import torch
from torch import Tensor

from ..core import checks, register
from ._base import Mix, MixPlan, beta_sample, random_partner
from .mfw import weakened, weights_of


@register(
    "remix",
    kind="mix",
    year=2020,
    arxiv="2007.03943",
    space={
        "alpha": {"values": (0.5, 1.0, 2.0), "scale": "log"},
        "kappa": {"values": (1.5, 3.0, 6.0), "scale": "log", "low": 1.0},
    },
    examples=({}, {"beta": 2.0}),
    later=("beta",),
)
class Remix(Mix):
    r"""Mixes images as mixup does, but gives the whole label to the rarer class when the pair is uneven enough.

    .. math:: \tilde x = \lambda x_i + (1 - \lambda) x_j, \qquad \lambda_y = \begin{cases}
        0 & n_i / n_j \ge \kappa \text{ and } \lambda < \tau \\
        1 & n_i / n_j \le 1 / \kappa \text{ and } 1 - \lambda < \tau \\
        \lambda & \text{otherwise} \end{cases}

    with :math:`\lambda \sim \mathrm{Beta}(\alpha, \alpha)`, and the loss
    :math:`\lambda_y \ell(y_i) + (1 - \lambda_y) \ell(y_j)` of each pair.

    Args:
        class_counts: training images of each class, n_c.
        alpha: of the Beta distribution; 1 as in the paper.
        kappa: from which ratio of class sizes on a pair is uneven; 3 as in the paper.
        tau: how small the share of the more frequent class must be; 0.5 as in the paper, 0 is mixup.
        beta: of major feature weakening, as in `mixup`: the partner's share is then s of the own class times a number
            from the Beta distribution. None is Remix.

    Differs from the paper: every pair has its own lambda; the paper does not say, and mixup, which it builds on, draws
    one for a batch.

    Example:
        >>> mixed = Remix([90, 10])(torch.eye(6), torch.tensor([0, 0, 0, 1, 1, 1]))
        >>> rare_with_frequent = (mixed.target == 1) & (mixed.target[mixed.partner] == 0)
        >>> bool((mixed.label_lam[rare_with_frequent] >= mixed.lam[rare_with_frequent]).all())
        True

    Reference: Chou, Chang, Pan, Wei, Juan. Remix: Rebalanced Mixup. ECCV Workshops 2020.
    """

    class_counts: Tensor
    weights: Tensor | None

    def __init__(
        self,
        class_counts: checks.Counts,
        alpha: float = 1.0,
        kappa: float = 3.0,
        tau: float = 0.5,
        beta: float | None = None,
    ) -> None:
        super().__init__()
        self.alpha = checks.above("alpha", alpha, 0)
        self.kappa = checks.at_least("kappa", kappa, 1)
        self.tau = checks.between("tau", tau, 0, 1)
        # made from the constructor's arguments, so no part of a checkpoint
        self.register_buffer("class_counts", checks.counts(class_counts).long(), persistent=False)
        self.beta = beta
        self.register_buffer("weights", weights_of(beta, class_counts), persistent=False)

    def plan(self, target: Tensor) -> MixPlan:
        lam = beta_sample(self.alpha, len(target), target.device, self.generator)
        lam = weakened(lam, self.weights, target)
        partner = random_partner(target, self.generator)
        own = self.class_counts[target.long()]
        theirs = own[partner]
        to_partner = (own >= self.kappa * theirs) & (lam < self.tau)
        to_own = (theirs >= self.kappa * own) & (1 - lam < self.tau)
        return MixPlan(partner, lam, torch.where(to_own, 1.0, lam).masked_fill(to_partner, 0.0))
