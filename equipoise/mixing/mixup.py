"""Mixup of inputs and labels."""

from __future__ import annotations

from torch import Tensor

from ..core import checks, register
from ._base import Mix, MixPlan, beta_sample, random_partner
from .mfw import weakened, weights_of


@register(
    "mixup",
    kind="mix",
    year=2018,
    arxiv="1710.09412",
    space={"alpha": {"values": (0.25, 0.5, 1.0), "scale": "log"}},
    examples=({}, {"per_batch": True}, {"beta": 2.0}),
    later=("per_batch", "beta"),
)
class Mixup(Mix):
    r"""Mixes each image and its label with those of another sample.

    .. math:: \tilde x = \lambda x + (1 - \lambda) x_\pi, \qquad
        \tilde\ell = \lambda \ell(y) + (1 - \lambda) \ell(y_\pi), \qquad \lambda \sim \mathrm{Beta}(\alpha, \alpha)

    Args:
        alpha: how strongly; towards 0 samples are hardly mixed. The paper uses 1 on CIFAR and 0.2 to 0.4 on
            ImageNet; long-tailed comparisons use 1.
        per_batch: True draws one lambda for the whole batch, as the paper does, False one for each sample.
        beta: of major feature weakening, whose paper tries its weights s(N) in mixup too (D.2): the partner's share is
            then s of the own class, for softness `beta`, times a number from the Beta distribution. None is mixup.
        class_counts: training images of each class; `beta` needs them.

    Differs from the paper: its batches have one lambda each; here that is `per_batch=True`. How s(N) enters mixup is
    not printed; here it is as in major feature weakening, and labels are shared as images are.

    Example:
        >>> mixed = Mixup(alpha=1.0)(torch.eye(2), torch.tensor([0, 1]))
        >>> bool((mixed.inputs.sum(1) == 1).all()), bool((mixed.label_lam == mixed.lam).all())
        (True, True)

    Reference: Zhang, Cisse, Dauphin, Lopez-Paz. mixup: Beyond Empirical Risk Minimization. ICLR 2018.
    """

    weights: Tensor | None

    def __init__(
        self,
        alpha: float = 1.0,
        per_batch: bool = False,
        beta: float | None = None,
        class_counts: checks.Counts | None = None,
    ) -> None:
        super().__init__()
        self.alpha = checks.above("alpha", alpha, 0)
        self.per_batch = checks.truth("per_batch", per_batch)
        self.beta = beta
        self.register_buffer("weights", weights_of(beta, class_counts), persistent=False)

    def plan(self, target: Tensor) -> MixPlan:
        draws = 1 if self.per_batch else len(target)
        lam = beta_sample(self.alpha, draws, target.device, self.generator).expand(len(target))
        lam = weakened(lam, self.weights, target)
        return MixPlan(random_partner(target, self.generator), lam, lam)
