"""Example weighing as a correction of a trained network."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from ...core import checks, register, signature_repr
from .example_weight import set_example_weight
from .tune import METRICS, tune_example_weight


@register("example_weighing", kind="posthoc", year=2020, arxiv="1906.03548")
class ExampleWeighing:
    r"""Lets each example share in the statistics that normalize it at test time; its weight is tuned on held-out data.

    .. math:: \mu_i = \alpha E[x_i] + (1 - \alpha) m_x, \qquad
        \sigma_i^2 = \alpha E[x_i^2] + (1 - \alpha) m_{x^2} - \mu_i^2

    Unlike other corrections it changes the network, not its outputs, so the images pass through it once more.

    Args:
        alpha: the example's share. None: chosen by `change` on validation data; then in `alpha_`.
        metric: what it is chosen for, "accuracy", "balanced_accuracy" or "loss"; the paper tunes for accuracy and for
            loss and finds different optima.

    Differs from the paper: 22 weights between 0 and 1 are compared by running the network at six of them.

    Example:
        >>> network = nn.Sequential(nn.BatchNorm2d(2), nn.Flatten()).eval()
        >>> weighing = ExampleWeighing(alpha=0.25)
        >>> weighing.change(network, [])
        >>> weighing.alpha_
        0.25

    Reference: Summers, Dinneen. Four Things Everyone Should Know to Improve Batch Normalization. ICLR 2020.
    """

    def __init__(self, alpha: float | None = None, metric: str = "balanced_accuracy") -> None:
        self.alpha = None if alpha is None else checks.between("alpha", alpha, 0, 1)
        self.metric = checks.one_of("metric", metric, METRICS)
        self.alpha_ = self.alpha

    def change(self, network: nn.Module, batches: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Choose alpha on `batches` of (inputs, target) unless it is given, and set it throughout `network`."""
        if self.alpha_ is None:
            self.alpha_ = float(tune_example_weight(network, batches, self.metric, progress=None))
        set_example_weight(network, self.alpha_)

    def __repr__(self) -> str:
        return f"ExampleWeighing({signature_repr(self)})"
