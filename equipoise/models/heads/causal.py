"""The causal head: what the optimizer's momentum did to all features alike is taken out at test time."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from ...core import checks, full_precision, register
from .cosine import unit


@fx.wrap  # as for the cosine head
def causal_logits(
    features: Tensor,
    weight: Tensor,
    mean: Tensor | None = None,
    heads: int = 2,
    tau: float = 16.0,
    gamma: float = 1 / 32,
    alpha: float = 1.0,
) -> Tensor:
    """features (N, d), weight (C, d), mean (d,) -> logits (N, C); `mean` None is training. See `CausalHead`."""
    with torch.autocast(features.device.type, enabled=False):  # as for the cosine head
        x, w = (full_precision(v).unflatten(-1, (heads, -1)) for v in (features, weight))
        x = unit(x)
        w = w / (torch.linalg.vector_norm(w, dim=-1, keepdim=True) + gamma)
        if mean is not None:
            direction = unit(full_precision(mean).unflatten(-1, (heads, -1)))
            x = x - alpha * (x * direction).sum(-1, keepdim=True) * direction
        return tau / heads * F.linear(x.flatten(1), w.flatten(1))


@register(
    "causal", kind="head", year=2020, arxiv="2009.12991", space={"alpha": {"values": (0.5, 1.0, 1.5), "low": 0.0}}
)
class CausalHead(nn.Module):
    r"""A multi-head cosine classifier that at test time ignores the direction in which features lie on average.

    .. math:: z_k = \frac{\tau}{H} \sum_h (\hat x_h - \alpha \cos(x_h, \bar x_h) \hat{\bar x}_h)^\top
              \frac{w_{k,h}}{\|w_{k,h}\| + \gamma}, \qquad \hat v = \frac{v}{\|v\|}

    where :math:`\bar x` is the moving mean of the features, and the term in alpha is left out while training. The mean
    points to the large classes, because the optimizer's momentum carries all features there.

    Args:
        in_features: d.
        num_classes: C.
        heads: H, into how many parts features and weights are cut; 2 in the paper. It must divide d.
        tau: scale, 16 in the paper.
        gamma: added to the length of the weights, 1/32 in the paper.
        alpha: how much of the mean direction is taken out at test time; 1.0 for CIFAR-10, 1.5 for CIFAR-100 and 3.0
            for ImageNet-LT in the released code; 0 gives the plain classifier. Choose it on validation data.
        momentum: how much of the moving mean of features is kept at a step, 0.9 as the optimizer's.

    Differs from the paper: nothing known. The moving mean gives new features the weight 1 - momentum, where the
    released code gives them 1; only its direction counts, and that is the same. Before the first training step the mean
    is zero and nothing is taken out.

    Example:
        >>> weight, x = torch.eye(2), torch.tensor([[3.0, 4.0]])
        >>> causal_logits(x, weight, heads=1, tau=1.0, gamma=0.0)
        tensor([[0.6000, 0.8000]])
        >>> causal_logits(x, weight, mean=torch.tensor([0.0, 2.0]), heads=1, tau=1.0, gamma=0.0)
        tensor([[0.6000, 0.0000]])

    Reference: Tang, Huang, Zhang. Long-Tailed Classification by Keeping the Good and Removing the Bad Momentum Causal
    Effect. NeurIPS 2020.
    """

    no_decay: tuple[str, ...] = ()
    feature_mean: Tensor

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        heads: int = 2,
        tau: float = 16.0,
        gamma: float = 1 / 32,
        alpha: float = 1.0,
        momentum: float = 0.9,
    ) -> None:
        super().__init__()
        self.in_features = checks.whole("in_features", in_features, 1)
        self.num_classes = checks.whole("num_classes", num_classes, 1)
        self.heads = checks.whole("heads", heads, 1)
        self.tau = checks.above("tau", tau, 0)
        self.gamma = checks.above("gamma", gamma, 0)
        self.alpha = checks.at_least("alpha", alpha, 0)
        self.momentum = checks.between("momentum", momentum, 0, 0.9999)
        if in_features % heads:
            raise ValueError(f"heads must divide the number of features ({in_features}), not {heads}")
        self.weight = nn.Parameter(torch.empty(num_classes, in_features))
        self.register_buffer("feature_mean", torch.zeros(in_features))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.in_features)
        nn.init.uniform_(self.weight, -bound, bound)
        self.feature_mean.zero_()

    def forward(self, features: Tensor) -> Tensor:
        if self.training:
            self._follow(features.detach())
        mean = None if self.training else self.feature_mean
        return causal_logits(features, self.weight, mean, self.heads, self.tau, self.gamma, self.alpha)

    def _follow(self, features: Tensor) -> None:
        if not features.shape[0]:
            return  # no features have no mean
        batch_mean = full_precision(features).mean(0)
        self.feature_mean.lerp_(batch_mean.to(self.feature_mean.dtype), 1 - self.momentum)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, num_classes={self.num_classes}, heads={self.heads}, tau={self.tau}, "
            f"gamma={self.gamma}, alpha={self.alpha}, momentum={self.momentum}"
        )
