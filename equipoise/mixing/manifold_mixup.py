"""Mixup inside the network."""

from __future__ import annotations

from ..core import checks, register
from .mixup import Mixup


@register(
    "manifold_mixup",
    kind="mix",
    year=2019,
    arxiv="1806.05236",
    space={"alpha": {"values": (0.5, 1.0, 2.0), "scale": "log"}},
    examples=({}, {"per_batch": True}),
    later=("per_batch",),
)
class ManifoldMixup(Mixup):
    r"""Mixes the features of each sample at one place of the network, and its label, with those of another.

    .. math:: \tilde z = \lambda z + (1 - \lambda) z_\pi, \qquad
        \tilde\ell = \lambda \ell(y) + (1 - \lambda) \ell(y_\pi), \qquad \lambda \sim \mathrm{Beta}(\alpha, \alpha)

    Args:
        alpha: how strongly. The paper uses 2 on CIFAR; long-tailed comparisons use 1.
        site: where features are mixed, the end of the first stage unless told.
        per_batch: True draws one lambda for the whole batch, as the paper does, False one for each sample.

    Differs from the paper: it draws a layer for each batch, the input among them, here the place is fixed as in
    long-tailed comparisons; its batches have one lambda each, here that is `per_batch=True`.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
        >>> x, y = torch.randn(5, 3), torch.tensor([0, 1, 0, 1, 1])
        >>> with ManifoldMixup().at(net[0], y) as mixed:
        ...     loss = mixed.loss(torch.nn.CrossEntropyLoss(reduction="none"), net(x))

    Reference: Verma, Lamb, Beckham, Najafi, Mitliagkas, Lopez-Paz, Bengio. Manifold Mixup: Better Representations by
    Interpolating Hidden States. ICML 2019.
    """

    def __init__(self, alpha: float = 1.0, site: str = "stage1", per_batch: bool = False) -> None:
        super().__init__(alpha, per_batch)
        self.site = checks.title("site", site)
