"""The planar head: features pass through two dimensions, so that they can be drawn."""

from __future__ import annotations

from torch import Tensor, nn

from ...core import register


@register("planar", kind="head", year=2021, arxiv="2104.01769")
class PlanarHead(nn.Module):
    r"""Two linear layers with two numbers between them: what the network knows of an image is a point in the plane.

    .. math:: u = A x + a \in \mathbb{R}^2, \qquad z = W u + b

    For pictures of features and decision regions while training, not for accuracy: two dimensions are few.

    Args:
        in_features: d.
        num_classes: C.

    Differs from the paper: nothing known; its figures 5 and 6 add such a layer to a trained kind of network.

    Example:
        >>> head = PlanarHead(5, 3)
        >>> head.points(torch.zeros(4, 5)).shape, head(torch.zeros(4, 5)).shape
        (torch.Size([4, 2]), torch.Size([4, 3]))

    Reference: Ye, Zhan, Chao. Procrustean Training for Imbalanced Deep Learning. ICCV 2021, figures 5 and 6.
    """

    no_decay: tuple[str, ...] = ()

    def __init__(self, in_features: int, num_classes: int) -> None:
        super().__init__()
        self.in_features, self.num_classes = in_features, num_classes
        self.plane, self.classes = nn.Linear(in_features, 2), nn.Linear(2, num_classes)

    def reset_parameters(self) -> None:
        self.plane.reset_parameters()
        self.classes.reset_parameters()

    def points(self, features: Tensor) -> Tensor:
        """(N, d) -> (N, 2)."""
        return self.plane(features)

    def forward(self, features: Tensor) -> Tensor:
        return self.classes(self.points(features))

    @property
    def weight(self) -> Tensor:
        """(C, d): both layers as one."""
        return self.classes.weight @ self.plane.weight

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, num_classes={self.num_classes}"
