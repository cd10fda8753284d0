"""The head of OLTR: features are completed from a memory of class centroids."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from ...core import checks, full_precision, register
from .cosine import unit


def squared_distances(features: Tensor, centroids: Tensor) -> Tensor:
    """features (N, d), centroids (C, d) -> (N, C)."""
    squares = features.square().sum(1, keepdim=True) + centroids.square().sum(1)
    return (squares - 2 * features @ centroids.T).clamp_min(0)  # rounding can make it negative


def embed_with_memory(
    features: Tensor, centroids: Tensor, recall: Tensor, select: Tensor, reach: float = 10.0
) -> Tensor:
    """features (N, d), centroids (C, d), recall (N, C), select (N, d) -> (N, d). See `MetaEmbeddingHead`."""
    memory = recall.softmax(1) @ centroids
    # an image on a centroid would be infinitely near; the head's squashing bounds the length anyway
    nearest = squared_distances(features, centroids).amin(1, keepdim=True).clamp_min(1e-6).sqrt()
    return (reach / nearest) * (features + select.tanh() * memory)


def squashed_logits(embedding: Tensor, weight: Tensor, scale: float = 16.0) -> Tensor:
    """embedding (N, d), weight (C, d) -> logits (N, C). See `MetaEmbeddingHead`."""
    length = torch.linalg.vector_norm(embedding, dim=1, keepdim=True)
    return scale * F.linear(embedding / (1 + length), unit(weight))


@fx.wrap  # as for the cosine head
def memory_logits(
    features: Tensor,
    weight: Tensor,
    recalling: tuple[Tensor, Tensor],
    selecting: tuple[Tensor, Tensor],
    memory: tuple[Tensor, Tensor],
    scale: float = 16.0,
    reach: float = 10.0,
) -> Tensor:
    """features (N, d) -> logits (N, C), from two linear layers, the centroids, and whether they are known yet."""
    centroids, remembers = memory
    with torch.autocast(features.device.type, enabled=False):  # as for the cosine head
        x = full_precision(features)
        recall = F.linear(x, *recalling)
        v = embed_with_memory(x, centroids, recall, F.linear(x, *selecting), reach)
        return torch.where(remembers, squashed_logits(v, weight, scale), recall)


@register("meta_embedding", kind="head", year=2019, arxiv="1904.05160")
class MetaEmbeddingHead(nn.Module):
    r"""Adds to the features what a memory of class centroids recalls, and trusts them more near a centroid.

    .. math:: v = \frac{\rho}{\min_c \|x - m_c\|} \Bigl(x + \tanh(Sx + s) \odot \sum_c o_c m_c\Bigr), \qquad
              o = \mathrm{softmax}(Hx + h), \qquad z_k = \sigma \, \frac{v}{1 + \|v\|} \cdot \frac{w_k}{\|w_k\|}

    Until `remember` is told the centroids :math:`m_c`, the logits are :math:`Hx + h`, those of a linear head; the
    procedure `oltr` tells them and trains them.

    Args:
        in_features: d.
        num_classes: C.
        scale: :math:`\sigma`, 16 in the released code.
        reach: :math:`\rho`, 10 in the released code.

    Differs from the paper: nothing known. As in the released code, H first is the classifier of the stage without
    memory. A distance below 0.001 counts as 0.001.

    Example:
        >>> x, centroids = torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 0.0], [3.0, 0.0]])
        >>> recall, select = torch.tensor([[0.0, 0.0]]), torch.tensor([[100.0, 0.0]])
        >>> embed_with_memory(x, centroids, recall, select)  # 10/4 · (3 + 1 · 1.5, 4 + 0)
        tensor([[11.2500, 10.0000]])

    Reference: Liu, Miao, Zhan, Wang, Gong, Yu. Large-Scale Long-Tailed Recognition in an Open World. CVPR 2019.
    """

    no_decay: tuple[str, ...] = ("centroids",)
    remembers: Tensor

    def __init__(self, in_features: int, num_classes: int, scale: float = 16.0, reach: float = 10.0) -> None:
        super().__init__()
        self.in_features = checks.whole("in_features", in_features, 1)
        self.num_classes = checks.whole("num_classes", num_classes, 1)
        self.scale = checks.above("scale", scale, 0)
        self.reach = checks.above("reach", reach, 0)
        self.weight = nn.Parameter(torch.empty(num_classes, in_features))
        self.centroids = nn.Parameter(torch.zeros(num_classes, in_features))
        self.register_buffer("remembers", torch.tensor(False))
        self.reset_parameters()
        self.hallucinator = nn.Linear(in_features, num_classes)
        self.selector = nn.Linear(in_features, in_features)

    def reset_parameters(self) -> None:
        """Draw new class weights; the two linear layers have a method of this name of their own."""
        bound = 1 / math.sqrt(self.in_features)
        nn.init.uniform_(self.weight, -bound, bound)

    @torch.no_grad()
    def remember(self, centroids: Tensor) -> None:
        """Use the memory from now on, starting from these centroids (C, d)."""
        self.centroids.copy_(centroids)
        self.remembers.fill_(True)

    def forward(self, features: Tensor) -> Tensor:
        recalling = (self.hallucinator.weight, self.hallucinator.bias)
        selecting = (self.selector.weight, self.selector.bias)
        # centroids learn from the distances to features alone
        memory = (self.centroids.detach(), self.remembers)
        return memory_logits(features, self.weight, recalling, selecting, memory, self.scale, self.reach)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, num_classes={self.num_classes}, scale={self.scale}, reach={self.reach}"
