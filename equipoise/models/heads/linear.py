"""The linear head, with a bias that may start at the classes' prior."""

from __future__ import annotations

import math

from torch import nn

from ...core import checks, register

PRIORS = ("others", "classes")


def prior_bias(num_classes: int, prior: str) -> float:
    """The bias at which each sigmoid starts near 1/C: -log(C - 1) exactly ("others"), -log C nearly ("classes")."""
    return -math.log(num_classes - 1 if prior == "others" else num_classes)


@register("linear", kind="head")
class LinearHead(nn.Linear):
    r"""Logits are weighted sums of the features.

    .. math:: z_k = w_k^\top x + b_k, \qquad b_k = 0, \; -\log(C - 1) \; \text{or} \; -\log C \text{ at the start}

    Args:
        in_features: d.
        num_classes: C.
        prior: None starts the bias as `torch.nn.Linear` does. For losses with one sigmoid for each class, "others" is
            the start of class-balanced loss, at which each probability is 1/C, and "classes" that of Kornblith et al.
            A prior bias is exempt from weight decay (`no_decay`).

    Differs from the paper: nothing known for "others". Kornblith et al. print the "classes" start; their released
    code starts at 0 and subtracts log C from the logits, which is not the same once the bias decays.

    Example:
        >>> LinearHead(4, 10, prior="others").bias[0]
        tensor(-2.1972, grad_fn=<SelectBackward0>)

    Reference: Cui, Jia, Lin, Song, Belongie. Class-Balanced Loss Based on Effective Number of Samples. CVPR 2019.
    Kornblith, Chen, Lee, Norouzi. Why Do Better Loss Functions Lead to Less Transferable Features? NeurIPS 2021.
    """

    prior: str | None = None  # nn.Linear's constructor draws the parameters before ours can set it
    no_decay: tuple[str, ...] = ()

    def __init__(self, in_features: int, num_classes: int, prior: str | None = None) -> None:
        checks.whole("num_classes", num_classes, 2 if prior == "others" else 1)
        super().__init__(checks.whole("in_features", in_features, 1), num_classes)
        self.num_classes = num_classes
        if prior is not None:
            self.prior = checks.one_of("prior", prior, PRIORS)
            self.no_decay = ("bias",)
            self._start_at_prior()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self._start_at_prior()

    def _start_at_prior(self) -> None:
        if self.prior is not None:
            nn.init.constant_(self.bias, prior_bias(self.num_classes, self.prior))

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, num_classes={self.num_classes}, prior={self.prior!r}"
