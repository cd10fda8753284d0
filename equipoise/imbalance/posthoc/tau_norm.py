"""Tau-normalization of a trained classifier."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor

from ...core import Output, checks, full_precision, register
from .._base import Posthoc, home
from ..samplers._choose import best_tau


def tau_normalize(weight: Tensor, tau: float) -> Tensor:
    """weight (C, d) -> w_c / ||w_c||^tau. See `TauNorm`."""
    weight = full_precision(weight)
    norm = torch.linalg.vector_norm(weight, dim=1, keepdim=True)
    # a row of zeros stays one
    return weight / norm.where(norm > 0, 1.0) ** tau


@register("tau_norm", kind="posthoc", year=2020, arxiv="1910.09217")
class TauNorm(Posthoc):
    r"""Evens out the norms of a trained linear head's class weights, which are larger for frequent classes.

    .. math:: z_c = \frac{w_c}{\lVert w_c \rVert^\tau} \cdot x

    Args:
        head_weight: w (C, d), the weight of the trained head; its bias is dropped.
        tau: 0 leaves the weights alone, 1 gives all the same norm. None: chosen by `fit` from 0, 0.1, …, 2 for
            balanced accuracy, of equals the nearest to 1; then in `tau_`.

    Differs from the paper: the published sweep looks at test accuracy; here tau is chosen on held-out data.

    Example:
        >>> tau_normalize(torch.tensor([[3.0, 4.0], [0.0, 1.0]]), tau=1.0)
        tensor([[0.6000, 0.8000],
                [0.0000, 1.0000]])

    Reference: Kang, Xie, Rohrbach, Yan, Gordo, Feng, Kalantidis. Decoupling Representation and Classifier for
    Long-Tailed Recognition. ICLR 2020.
    """

    def __init__(self, head_weight: Tensor, tau: float | None = None) -> None:
        self.head_weight = torch.as_tensor(head_weight, device=home(head_weight)).detach()
        if self.head_weight.dim() != 2:
            raise ValueError(f"head_weight must be of shape (C, d), not {tuple(self.head_weight.shape)}")
        self.tau = None if tau is None else checks.at_least("tau", tau, 0)
        self.tau_ = self.tau

    def fit(self, out: Output, target: Tensor) -> Self:
        if self.tau is None:
            self.tau_ = best_tau(lambda tau: self._logits(out, tau), target)
        return self

    def __call__(self, out: Output) -> Tensor:
        if self.tau_ is None:
            raise ValueError("TauNorm(tau=None) chooses tau on held-out outputs; call fit(out, target) first")
        return self._logits(out, self.tau_)

    def __repr__(self) -> str:
        return f"TauNorm(tau={self.tau})"  # without the C · d numbers of the head

    def _logits(self, out: Output, tau: float) -> Tensor:
        if out.features is None or out.features.shape[1:] != self.head_weight.shape[1:]:
            shape = None if out.features is None else tuple(out.features.shape)
            raise ValueError(f"TauNorm needs features of shape (N, {self.head_weight.shape[1]}), got {shape}")
        features = full_precision(out.features)
        return features @ tau_normalize(self.head_weight, tau).to(features).T
