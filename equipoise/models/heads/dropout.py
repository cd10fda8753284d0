"""The dropout head: features go missing while training."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core import checks, register
from .linear import LinearHead


def checked_keep(keep: float) -> float:
    """A probability above 0: with nothing kept there is nothing to classify."""
    return checks.above("keep", checks.between("keep", keep, 0, 1), 0)


def dropped(features: Tensor, keep: float, generator: torch.Generator | None) -> Tensor:
    """Each feature is kept with probability `keep` and divided by it, else 0: (N, d) -> (N, d)."""
    # in float32 whatever the default type: bfloat16 has too few numbers below 1 to hit `keep`
    noise = torch.rand(features.shape, dtype=torch.float32, device=features.device, generator=generator)
    return features * (noise < keep) / keep


@register(
    "dropout",
    kind="head",
    year=2014,
    neutral={"keep": 1.0},
    space={"keep": {"values": (0.6, 0.7, 0.8), "low": 0.1, "high": 1.0}},
    examples=({}, {"prior": "classes"}),
    later=("prior",),
)
class DropoutHead(LinearHead):
    r"""A linear head that sees, while training, each feature with probability `keep`.

    .. math:: z = W (x \odot m) / \rho + b, \qquad m_j \sim \mathrm{Bernoulli}(\rho)

    Args:
        in_features: d.
        num_classes: C.
        keep: :math:`\rho`, the probability to keep a feature, not to drop it. Kornblith et al. use 0.7 on ImageNet,
            0.65 on CIFAR-10 and 0.75 on CIFAR-100.
        prior: where the bias starts if each class has a sigmoid, as in the linear head.

    `generator` is where random numbers come from; None means PyTorch's global one.

    Differs from the paper: nothing known.

    Example:
        >>> head = DropoutHead(3, 2, keep=0.5).eval()
        >>> bool(torch.allclose(head(torch.eye(3)), torch.nn.functional.linear(torch.eye(3), head.weight, head.bias)))
        True

    Reference: Srivastava, Hinton, Krizhevsky, Sutskever, Salakhutdinov. Dropout. JMLR 2014. Kornblith, Chen, Lee,
    Norouzi. Why Do Better Loss Functions Lead to Less Transferable Features? NeurIPS 2021.
    """

    generator: torch.Generator | None = None

    def __init__(self, in_features: int, num_classes: int, keep: float = 0.7, prior: str | None = None) -> None:
        super().__init__(in_features, num_classes, prior)
        self.keep = checked_keep(keep)

    def forward(self, features: Tensor) -> Tensor:
        if self.training:
            features = dropped(features, self.keep, self.generator)
        return F.linear(features, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, num_classes={self.num_classes}, keep={self.keep}, prior={self.prior!r}"
