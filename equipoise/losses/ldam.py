"""Label-distribution-aware margins."""

from __future__ import annotations

from torch import Tensor

from ..core import checks, register
from ..native.losses import softmax_loss
from ._base import FusedLoss
from ._fused import in_one_call
from ._softmax import nll

__all__ = ["LDAMLoss", "ldam_loss", "ldam_margins"]


def ldam_margins(class_counts: Tensor, max_margin: float = 0.5) -> Tensor:
    """Margin of each class, in proportion to n^(-1/4), the largest being `max_margin`: (C,) -> (C,) in float64."""
    margins = class_counts.clamp_min(1).double() ** -0.25
    return margins * (max_margin / margins.max())


def ldam_loss(
    logits: Tensor, target: Tensor, *, scaled_margins: Tensor, scale: float = 30.0, reduction: str = "none"
) -> Tensor:
    """LDAM of each sample: logits (N, C), target (N,), scale · margins (C,) -> (N,). See `LDAMLoss`."""
    return _shifted(logits, target, -scaled_margins, scale, reduction=reduction)


@in_one_call(softmax_loss, scale="scale", at_label="label_shift")
def _shifted(logits: Tensor, target: Tensor, label_shift: Tensor, scale: float, *, reduction: str = "none") -> Tensor:
    """Cross-entropy of scale · z, where the label's own has `label_shift` (C,) added: -scale · margins."""
    shift = label_shift.index_select(0, target)[:, None]
    return nll((scale * logits).scatter_add(1, target[:, None], shift), target, reduction)


@register(
    "ldam",
    kind="loss",
    year=2019,
    arxiv="1906.07413",
    companions={"head": "cosine(tau=1.0, bias=False)"},
    space={"max_margin": {"values": (0.25, 0.5, 1.0), "scale": "log"}},
    examples=({}, {"max_margin": 0.0}, {"max_margin": 2.0, "scale": 1.0}),
)
class LDAMLoss(FusedLoss):
    r"""Cross-entropy of cosines, where the label's must exceed the others by a margin, wider for rare classes.

    .. math:: \ell(z, y) = -\log \frac{e^{s(z_y - m_y)}}{e^{s(z_y - m_y)} + \sum_{k \ne y} e^{s z_k}},
        \qquad m_c = m_{\max} \frac{n_c^{-1/4}}{\max_k n_k^{-1/4}}

    The logits are cosines between feature and class weight, without bias: use a cosine head.

    Args:
        class_counts: training images of each class (C,). A class with 0 has the margin of a class with 1.
        max_margin: margin of the rarest class; 0.5 is the released code's.
        scale: s, the inverse temperature of the cosines; 30 is the released code's.

    Differs from the paper: nothing known. Deferred re-weighting (LDAM-DRW) is a weighting:
    ``effective_number(beta=0.9999, start=0.8, normalize='batch')``.

    Example:
        >>> LDAMLoss([10000, 16], scale=4.0)(torch.tensor([[0.5, 0.5]]), torch.tensor([1]))
        tensor(2.1269)

    Reference: Cao, Wei, Gaidon, Arechiga, Ma. Learning Imbalanced Datasets with Label-Distribution-Aware Margin
    Loss. NeurIPS 2019.
    """

    class_counts: Tensor

    def __init__(
        self, class_counts: checks.Counts, max_margin: float = 0.5, scale: float = 30.0, *, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction, class_counts)
        self.max_margin = checks.at_least("max_margin", max_margin, 0)
        self.scale = checks.above("scale", scale, 0)

    @property
    def margins(self) -> Tensor:
        """Of each class (C,), in float64."""
        return ldam_margins(self.class_counts, self.max_margin)

    def link(self, logits: Tensor) -> Tensor:
        return self.scale * logits

    def derived(self, counts: Tensor) -> Tensor:
        return -self.scale * ldam_margins(counts, self.max_margin)  # negative here, once, and not at each call

    def reduced(self, logits: Tensor, target: Tensor, reduction: str) -> Tensor:
        return _shifted(logits, target, self.of_classes(logits), self.scale, reduction=reduction)
