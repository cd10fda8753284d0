"""Mixup of inputs and labels."""

from __future__ import annotations

from torch import Tensor

from ..core import checks, register
from ._base import Mix, MixPlan, beta_sample, random_partner


@register(
    "mixup",
    kind="mix",
    year=2018,
    arxiv="1710.09412",
    space={"alpha": {"values": (0.25, 0.5, 1.0), "scale": "log"}},
)
class Mixup(Mix):
    r"""Mixes each image and its label with those of another sample.

    .. math:: \tilde x = \lambda x + (1 - \lambda) x_\pi, \qquad
        \tilde\ell = \lambda \ell(y) + (1 - \lambda) \ell(y_\pi), \qquad \lambda \sim \mathrm{Beta}(\alpha, \alpha)

    Args:
        alpha: how strongly; towards 0 samples are hardly mixed. The paper uses 1 on CIFAR and 0.2 to 0.4 on
            ImageNet; long-tailed comparisons use 1.

    Differs from the paper: it draws one lambda for the batch, here every sample has its own.

    Example:
        >>> mixed = Mixup(alpha=1.0)(torch.eye(2), torch.tensor([0, 1]))
        >>> bool((mixed.inputs.sum(1) == 1).all()), bool((mixed.label_lam == mixed.lam).all())
        (True, True)

    Reference: Zhang, Cisse, Dauphin, Lopez-Paz. mixup: Beyond Empirical Risk Minimization. ICLR 2018.
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = checks.above("alpha", alpha, 0)

    def plan(self, target: Tensor) -> MixPlan:
        lam = beta_sample(self.alpha, len(target), target.device, self.generator)
        return MixPlan(random_partner(target, self.generator), lam, lam)
