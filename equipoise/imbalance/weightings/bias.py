"""Sample weights by the variance of a sample's feature map."""

from __future__ import annotations

import torch
from torch import Tensor

from ...core import Output, checks, full_precision, register
from .._base import Weighting

STATISTICS = ("variance", "mean", "product")
SCALINGS = ("batch", "running")


def bias_weights(
    feature_map: Tensor, alpha: float = 0.3, beta: float = 0.3, statistic: str = "variance", inverse: bool = False
) -> Tensor:
    """Weight of each sample: feature_map (N, c, h, w) -> (N,), without gradient. See `BiasWeighting`."""
    _check(alpha, beta, statistic, inverse, legacy=False)
    z = (alpha * scaled(statistics_of(feature_map, statistic))).exp() - beta
    return _combined(z, inverse)


def statistics_of(feature_map: Tensor, statistic: str) -> Tensor:
    """feature_map (N, c, h, w) -> (1, N), or (2, N) for "product": a sample's mean, its unbiased variance, or both."""
    if feature_map.dim() < 2 or feature_map.shape[1:].numel() < 2:
        raise ValueError(
            f"bias weights need a feature map of shape (N, c, h, w) with at least two values a sample, "
            f"got {tuple(feature_map.shape)}"
        )
    values = full_precision(feature_map.detach()).flatten(1)
    if not values.shape[0]:
        return values.new_empty(2 if statistic == "product" else 1, 0)  # PyTorch warns of an empty batch
    variance, mean = torch.var_mean(values, dim=1)
    return torch.stack({"variance": [variance], "mean": [mean], "product": [mean, variance]}[statistic])


def scaled(values: Tensor, smallest: Tensor | None = None) -> Tensor:
    """values (S, N) -> v' (S, N): 0 at the `smallest` (the batch's unless given), one unit the range of the batch."""
    if not values.shape[1]:  # an empty batch has no smallest value
        return values
    low, high = values.aminmax(dim=1, keepdim=True)
    span = high - low
    # a batch of one, or of equal samples, has no range
    return torch.where(span > 0, (values - (low if smallest is None else smallest)) / span, 0.0)


def _combined(z: Tensor, inverse: bool) -> Tensor:
    z = z.prod(0)
    return 1 / z if inverse else z


def _check(alpha: float, beta: float, statistic: str, inverse: bool, legacy: bool) -> None:
    checks.at_least("alpha", alpha, 0)
    checks.at_least("beta", beta, 0)
    checks.one_of("statistic", statistic, STATISTICS)
    checks.truth("inverse", inverse)
    checks.truth("legacy", legacy)
    if not legacy and beta >= 1:
        raise ValueError(f"beta must be below 1, not {beta}: the smallest weight is 1 - beta, and must be positive")
    if legacy and alpha == 0:
        raise ValueError("alpha must be above 0 with legacy=True: it is the smallest weight")


@register(
    "bias",
    kind="weighting",
    year=2021,
    arxiv="2107.11170",
    neutral={"alpha": 0.0, "beta": 0.0},
    space={
        "alpha": {"values": (0.15, 0.3, 0.6), "scale": "log"},
        "beta": {"values": (0.1, 0.3, 0.5), "low": 0.0, "high": 0.9},
    },
    examples=({}, {"scaling": "running", "statistic": "product"}),
)
class BiasWeighting(Weighting):
    r"""Weighs a sample by the variance of its feature map: samples with diverse features count more.

    .. math:: z_i = e^{\alpha v'_i} - \beta, \qquad v'_i = \frac{v_i - v_{\min}}{\max_j v_j - \min_j v_j}

    with :math:`v_i` the unbiased variance of the c·h·w values before pooling, without gradient, and the range that
    of the batch. Where the range is 0, v' is 0. With batch scaling z lies between 0.7 and 1.0499.

    Args:
        alpha: how fast the weight grows; 0.3 as in the paper.
        beta: how much is taken off; 0.3 as in the paper. Below 1, so that weights are positive.
        statistic: "variance"; "mean" puts the mean of the activations in its place; "product" multiplies both z.
        inverse: use 1/z, which favours samples of low variance (0.9525 to 1.4286); the paper's counter-check.
        scaling: of v. "batch" takes the batch's smallest v as zero, "running" the smallest seen in training, as the
            authors' code does by default; v' then has no upper bound.
        legacy: the formula of the authors' code before September 2022, exp(beta v') - 1 + alpha (0.3 to 0.65 for
            batch scaling), which the published checkpoints most likely come from.
        start: share of training after which the weights act.

    Differs from the paper: it describes the scaling loosely; "batch" is our reading. The authors' code divides 0 by 0
    where the range is 0, and forgets the running minimum when training is resumed; here it is in the checkpoint.

    Example:
        >>> feature_map = torch.tensor([[1.0, 1.0], [0.0, 2.0], [0.0, 4.0]]).view(3, 1, 1, 2)
        >>> bias_weights(feature_map)  # variances 0, 2, 8, so v' = 0, 1/4, 1
        tensor([0.7000, 0.7779, 1.0499])

    Reference: Abrahamyan, Ziatchin, Chen, Deligiannis. Bias Loss for Mobile Neural Networks. ICCV 2021.
    """

    smallest: Tensor
    facts = "class_counts", "smallest"
    sees_batch = True

    def __init__(
        self,
        alpha: float = 0.3,
        beta: float = 0.3,
        statistic: str = "variance",
        inverse: bool = False,
        scaling: str = "batch",
        legacy: bool = False,
        start: float = 0.0,
    ) -> None:
        super().__init__(start)
        _check(alpha, beta, statistic, inverse, legacy)
        self.alpha, self.beta, self.statistic, self.inverse, self.legacy = alpha, beta, statistic, inverse, legacy
        self.scaling = checks.one_of("scaling", scaling, SCALINGS)
        # a row for each statistic; the first batch replaces infinity before anything is computed from it
        rows = 2 if statistic == "product" else 1
        self.register_buffer("smallest", torch.full((rows, 1), torch.inf, dtype=torch.float32, device="cpu"))

    def weights(self, target: Tensor, out: Output | None) -> Tensor:
        if out is None or out.feature_map is None:
            raise ValueError("BiasWeighting needs the network's feature map: weighting(target, network.output(x))")
        values = statistics_of(out.feature_map, self.statistic)
        v = scaled(values, self._smallest_so_far(values) if self.scaling == "running" else None)
        z = (self.beta * v).exp() - 1 + self.alpha if self.legacy else (self.alpha * v).exp() - self.beta
        return _combined(z, self.inverse)

    def _smallest_so_far(self, values: Tensor) -> Tensor:
        smallest = self.smallest.to(values)
        if not values.shape[1]:
            return smallest
        smallest = torch.fmin(smallest, values.amin(1, keepdim=True))  # fmin: one bad batch must not stay forever
        if self.training:
            self.smallest.copy_(smallest)
        return smallest
