"""Logit adjustment after training."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor

from ...core import Output, UnlikeClasses, checks, full_precision, register
from .._base import Posthoc
from ..samplers._choose import best_tau

_SMALLEST = 1e-12  # stands for the prior of a class without images, as in the authors' code


def logit_adjustment(logits: Tensor, class_counts: checks.Counts, tau: float = 1.0) -> Tensor:
    """Logits (N, C) less tau times the log of the training prior. See `LogitAdjust`."""
    return full_precision(logits) - tau * _log_share(checks.counts(class_counts), logits)


def _log_share(amounts: Tensor, like: Tensor) -> Tensor:
    if like.dim() != 2 or like.shape[1] != len(amounts):
        raise ValueError(f"expected logits of shape (N, {len(amounts)}), one column per class, got {tuple(like.shape)}")
    return (amounts / amounts.sum()).clamp_min(_SMALLEST).log().to(full_precision(like))


@register(
    "logit_adjust",
    kind="posthoc",
    year=2021,
    arxiv="2007.07314",
    neutral={"tau": 0.0},
    space={"tau": {"values": (0.5, 1.0, 1.5), "low": 0.0}},
)
class LogitAdjust(Posthoc):
    r"""Takes the training prior out of the logits of a trained network, and a deployment prior in.

    .. math:: z_c - \tau \log \pi_c + \log q_c, \qquad \pi_c = n_c / \textstyle\sum_k n_k

    Args:
        class_counts: training images of each class, n_c.
        tau: how much of the prior is taken out; 1 is the paper's, and right when the network estimates the
            training posterior. None: chosen by `fit` from 0, 0.1, …, 2 for balanced accuracy (for accuracy under
            `prior` if that is given), of equals the nearest to 1; then in `tau_`.
        prior: q, the share of each class where the network will be used; None is uniform.

    Differs from the paper: the log of a class without images is that of 1e-12, as in the authors' code, which
    makes such a class very likely to be predicted; `prior` is an addition.

    Example:
        >>> from equipoise.core import Output
        >>> LogitAdjust([90, 10])(Output(torch.tensor([[2.0, 0.0]])))
        tensor([[2.1054, 2.3026]])

    Reference: Menon, Jayasumana, Rawat, Jain, Veit, Kumar. Long-Tail Learning via Logit Adjustment. ICLR 2021.
    """

    def __init__(
        self, class_counts: checks.Counts, tau: float | None = 1.0, prior: tuple[float, ...] | None = None
    ) -> None:
        self.class_counts = checks.counts(class_counts)
        self.tau = None if tau is None else checks.at_least("tau", tau, 0)
        self.tau_ = self.tau
        self.prior = prior
        self._prior = None if prior is None else _checked_prior(prior, len(self.class_counts))

    def fit(self, out: Output, target: Tensor) -> Self:
        if self.tau is None:
            self.tau_ = best_tau(lambda tau: self._adjusted(out.logits, tau), target, self._prior)
        return self

    def __call__(self, out: Output) -> Tensor:
        if self.tau_ is None:
            raise ValueError("LogitAdjust(tau=None) chooses tau on held-out outputs; call fit(out, target) first")
        return self._adjusted(out.logits, self.tau_)

    def _adjusted(self, logits: Tensor, tau: float) -> Tensor:
        # not by `logit_adjustment`, which looks at the counts each time: no exporter can follow that
        adjusted = full_precision(logits) - tau * _log_share(self.class_counts, logits)
        return adjusted if self._prior is None else adjusted + _log_share(self._prior, logits)


def _checked_prior(prior: tuple[float, ...], num_classes: int) -> Tensor:
    if not isinstance(prior, tuple | list):
        raise ValueError(f"prior must be a share for each class, such as (0.7, 0.3), not {prior!r}")
    shares = [checks.at_least("prior", share, 0) for share in prior]
    if not sum(shares) > 0:
        raise ValueError(f"prior must be shares of the classes that are not all 0, not {prior!r}")
    if len(shares) != num_classes:
        raise UnlikeClasses(f"prior of logit_adjust must have {num_classes} shares, one a class, not {len(shares)}")
    return torch.tensor(shares, dtype=torch.float64)
