"""The cosine head: logits are angles."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from ...core import checks, full_precision, register
from .dropout import checked_keep, dropped
from .linear import PRIORS, prior_bias


def unit(x: Tensor) -> Tensor:
    """`x` (…, d) divided by its length; a zero vector stays zero."""
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    # dividing a zero vector by 1, not by a tiny number: its gradient stays as large as the one that comes in
    return x / length.where(length > 0, 1)


@fx.wrap  # one node of a traced graph: what depends on the dtype and the device is decided when it runs
def cosine_logits(
    features: Tensor, weight: Tensor, bias: Tensor | None = None, tau: float = 0.05, normalize_features: bool = True
) -> Tensor:
    """features (N, d), weight (C, d), bias (C,) -> logits (N, C). See `CosineHead`."""
    # outside autocast: half precision would round the cosines, and 1/tau magnifies the error
    with torch.autocast(features.device.type, enabled=False):
        x, w = full_precision(features), unit(full_precision(weight))
        logits = F.linear(unit(x) if normalize_features else x, w) / tau
        return logits if bias is None else logits + bias


@register(
    "cosine",
    kind="head",
    space={"tau": {"values": (0.025, 0.05, 0.1), "scale": "log"}},
    examples=({}, {"keep": 0.8, "prior": "classes"}),
    later=("keep", "prior"),
)
class CosineHead(nn.Module):
    r"""Logits are cosines between features and class weights: neither's length can make a class win.

    .. math:: z_k = \frac{1}{\tau} \frac{w_k^\top x}{\|w_k\| \|x\|} + b_k

    Args:
        in_features: d.
        num_classes: C.
        tau: temperature. Kornblith et al. use 0.05 on ImageNet, 0.08 on CIFAR-10 and 0.1 on CIFAR-100; LDAM, which
            scales in the loss, uses 1.
        bias: whether there is a bias. Kornblith et al. have one, LDAM has none.
        normalize_features: False leaves x as it is.
        keep: the probability to keep a feature of x while training, as in the dropout head; 1 drops none. Kornblith et
            al. combine the two with 0.7 to 0.95.
        prior: where the bias starts if each class has a sigmoid: "others" at -log(C - 1) or "classes" at -log C, as in
            the linear head; None starts it at 0. A prior bias is exempt from weight decay (`no_decay`).

    `generator` is where random numbers come from; None means PyTorch's global one.

    Differs from the paper: as printed by Kornblith et al. Their released code does not normalise the features and
    divides the bias by tau too; `normalize_features=False` is the first of these. The class weights start with length
    1 in directions drawn as LDAM's code does; theirs start with a deviation of 0.01. A zero vector has cosine 0.

    Example:
        >>> head = CosineHead(2, 2, tau=0.5, bias=False)
        >>> head.weight.data = torch.tensor([[3.0, 0.0], [0.0, 7.0]])
        >>> head(torch.tensor([[6.0, 8.0]])).detach()
        tensor([[1.2000, 1.6000]])

    Reference: Kornblith, Chen, Lee, Norouzi. Why Do Better Loss Functions Lead to Less Transferable Features?
    NeurIPS 2021. Cao, Wei, Gaidon, Arechiga, Ma. Learning Imbalanced Datasets with Label-Distribution-Aware Margin
    Loss. NeurIPS 2019.
    """

    no_decay: tuple[str, ...] = ()
    generator: torch.Generator | None = None

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        tau: float = 0.05,
        bias: bool = True,
        normalize_features: bool = True,
        keep: float = 1.0,
        prior: str | None = None,
    ) -> None:
        super().__init__()
        self.in_features = checks.whole("in_features", in_features, 1)
        self.num_classes = checks.whole("num_classes", num_classes, 1)
        self.tau = checks.above("tau", tau, 0)
        self.normalize_features = checks.truth("normalize_features", normalize_features)
        self.weight = nn.Parameter(torch.empty(num_classes, in_features))
        self.bias = nn.Parameter(torch.empty(num_classes)) if checks.truth("bias", bias) else None
        self.keep = checked_keep(keep)
        self.prior = None if prior is None else checks.one_of("prior", prior, PRIORS)
        if prior is not None:
            if not bias:
                raise ValueError("prior is where the bias starts, and with bias=False there is none: leave one out")
            checks.whole("num_classes", num_classes, 2)
            self.no_decay = ("bias",)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        with torch.no_grad():
            self.weight.copy_(unit(self.weight.uniform_(-1, 1)))
        if self.bias is not None:
            start = 0.0 if self.prior is None else prior_bias(self.num_classes, self.prior)
            nn.init.constant_(self.bias, start)

    def forward(self, features: Tensor) -> Tensor:
        if self.training and self.keep < 1:
            features = dropped(features, self.keep, self.generator)
        return cosine_logits(features, self.weight, self.bias, self.tau, self.normalize_features)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, num_classes={self.num_classes}, tau={self.tau}, "
            f"bias={self.bias is not None}, normalize_features={self.normalize_features}, "
            f"keep={self.keep}, prior={self.prior!r}"
        )
