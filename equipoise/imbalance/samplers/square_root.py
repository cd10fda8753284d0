"""Square-root sampling."""

from __future__ import annotations

from torch import Tensor

from ...core import register
from ._visit import QuotaSampler


@register("square_root", kind="sampler", year=2018, arxiv="1805.00932")
class SquareRootSampler(QuotaSampler):
    r"""Visits classes in proportion to the square root of their size: between uniform and class-balanced.

    .. math:: p_c = \sqrt{n_c} / \textstyle\sum_k \sqrt{n_k}

    Args:
        labels: the class of each sample.
        start: share of training after which it acts; until then sampling is uniform.
        epochs: how many there are; in one's own loop `start` needs it, or ``set_epoch(epoch, progress=…)``.
        seed: of the order. With `rank` and `num_replicas` for use in one's own loop.

    Differs from the paper: each class has its share of the places of every epoch, to within one, instead of
    drawing a class for each place; within a class no sample comes twice before all have come.

    Example:
        >>> labels = torch.tensor([0] * 36 + [1] * 9)
        >>> labels[list(SquareRootSampler(labels))].bincount()  # 45 places as 6 to 3
        tensor([30, 15])

    Reference: Mahajan, Girshick, Ramanathan, He, Paluri, Li, Bharambe, van der Maaten. Exploring the Limits of Weakly
    Supervised Pretraining. ECCV 2018.
    """

    def shares(self, counts: Tensor, progress: float) -> Tensor:
        return counts.sqrt()
