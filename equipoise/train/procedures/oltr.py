"""Open long-tailed recognition's memory of class centroids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core import Batch, EquipoiseError, checks, full_precision, register
from ...models import MetaEmbeddingHead, Network
from ...models.heads.meta_embedding import squared_distances
from ..objective import Terms
from ._base import Deferred

if TYPE_CHECKING:
    from ..loop import Run

CHUNK = 512


def centroid_loss(
    features: Tensor, target: Tensor, centroids: Tensor, margin: float = 10.0, repel: float = 0.01
) -> Tensor:
    """features (N, d), target (N,), centroids (C, d) -> scalar. See `OpenLongTail`."""
    distance = squared_distances(full_precision(features), centroids)
    own = F.one_hot(target, len(centroids)).bool()
    attracting = distance.where(own, 0).sum(1).mean() / 2
    repelling = (margin - distance.where(~own, 0).mean()).clamp_min(0)
    return attracting + repel * repelling


@register(
    "oltr",
    kind="procedure",
    year=2019,
    arxiv="1904.05160",
    companions={"head": "meta_embedding", "sampler": "class_balanced(start=0.5)"},
)
class OpenLongTail(Deferred):
    r"""Trains plainly, then goes on with a memory of class centroids that completes the features of rare classes.

    .. math:: \ell = \frac1N \sum_n \ell(z_n, y_n) + \lambda \Bigl(\frac1{2N} \sum_n \|x_n - m_{y_n}\|^2 + \mu
              \Bigl[10 - \frac1{NC} \sum_n \sum_{c \ne y_n} \|x_n - m_c\|^2\Bigr]^+\Bigr)

    with x the features and z the logits of the head `meta_embedding`, which it brings along. The centroids m start as
    the mean features of the classes over the training images, and learn from the second term. It goes with
    class-balanced sampling from the same `start` (it brings that along for 0.5).

    Args:
        start: share of training after which the memory acts. The released code has 30 epochs without memory and 60 with
            it, each with a learning rate that starts anew; for one falling rate we take half.
        weight: :math:`\lambda`, 0.01 in the released code.
        repel: :math:`\mu`, 0.01 in the released code.

    Differs from the paper: two stages in one run, with one learning rate for network, head and centroids (0.01, 0.1 and
    0.01 in the second stage there). No modulated attention before the features. The centroids' gradient is that of the
    formula, where the released code divides it by the class's number in the batch; they do not decay.

    Example:
        >>> features, centroids = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 0.0], [1.0, 2.0]])
        >>> centroid_loss(features, torch.tensor([0]), centroids)  # 1/2 · 1 + 0.01 · (10 - 4/2)
        tensor(0.5800)

    Reference: Liu, Miao, Zhan, Wang, Gong, Yu. Large-Scale Long-Tailed Recognition in an Open World. CVPR 2019.
    """

    def __init__(self, start: float = 0.5, weight: float = 0.01, repel: float = 0.01) -> None:
        super().__init__(start)
        self.weight = checks.at_least("weight", weight, 0)
        self.repel = checks.at_least("repel", repel, 0)

    def begin(self, run: Run) -> None:
        super().begin(run)
        if not isinstance(run.network.head, MetaEmbeddingHead):
            raise EquipoiseError(f'oltr needs head = "meta_embedding", not {run.recipe.head!r}')

    def switch(self, run: Run) -> None:
        for network in {run.network, run.evaluated}:
            network.head.remember(class_means(run, network.eval()))
        run.network.train()

    def forward(self, run: Run, batch: Batch) -> Terms:
        with run.precision():
            out = run.network.output(batch.inputs)
        terms = run.objective(out, batch, run.progress)
        if not self.active:
            return terms
        distances = centroid_loss(out.features, batch.target, run.network.head.centroids, repel=self.repel)
        return terms._replace(total=terms.total + self.weight * distances)


@torch.no_grad()
def class_means(run: Run, network: Network) -> Tensor:
    """The mean features of each class over the training images (C, d)."""
    sums = torch.zeros(run.task.num_classes, network.feature_dim, device=run.device)
    for images, labels in zip(run.task.train.images.split(CHUNK), run.task.train.labels.split(CHUNK), strict=True):
        with run.precision():
            features = network.output(run.inputs(images)).features
        assert features is not None
        sums += F.one_hot(labels, len(sums)).float().T @ full_precision(features)
    return sums / run.task.class_counts.to(run.device).clamp_min(1)[:, None]
