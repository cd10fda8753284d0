"""Poly-1 cross-entropy."""

from torch import Tensor

from equipoise.core import checks, register
from equipoise.losses import Loss, cross_entropy_loss


def poly1_loss(logits: Tensor, target: Tensor, epsilon: float = 1.0) -> Tensor:
    """Poly-1 cross-entropy of each sample: logits (N, C), target (N,) -> (N,)."""
    cost = cross_entropy_loss(logits, target)
    return cost + epsilon * (1 - (-cost).exp())


@register("poly1", kind="loss", year=2022, neutral={"epsilon": 0.0}, examples=[{}, {"epsilon": 0.0}, {"epsilon": 4.0}])
class Poly1Loss(Loss):
    r"""Cross-entropy with a push of its own for the probability of the label.

    .. math:: \ell(z, y) = -\log p_y + \epsilon (1 - p_y), \qquad p = \mathrm{softmax}(z)

    Args:
        epsilon: strength of the push; 0 gives cross-entropy.

    Differs from the paper: nothing known.

    Example:
        >>> Poly1Loss(epsilon=1.0)(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(1.1931)

    Reference: Leng, Tan, Liu, Cubuk, Shi, Cheng, Anguelov. PolyLoss: A Polynomial Expansion Perspective of
    Classification Loss Functions. ICLR 2022.
    """

    def __init__(self, epsilon: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.epsilon = checks.at_least("epsilon", epsilon, 0)

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        return poly1_loss(logits, target, self.epsilon)
