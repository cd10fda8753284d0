"""Batch normalization, as PyTorch has it."""

from __future__ import annotations

from torch import nn

from ..core import register


@register("batch", kind="norm", year=2015, arxiv="1502.03167")
def batch(num_features: int) -> nn.BatchNorm2d:
    r"""Each channel is shifted and scaled to mean 0 and variance 1 over the batch.

    .. math:: y = \gamma \frac{x - \mu_B}{\sqrt{\sigma_B^2 + \epsilon}} + \beta

    Args:
        num_features: channels. Epsilon is 1e-5 and the moving averages keep 0.9, as in the CIFAR code of the papers.

    Differs from the paper: the moving averages are exponential ones, as in every library.

    Example:
        >>> batch(1)(torch.tensor([1.0, 3.0]).view(2, 1, 1, 1)).detach().flatten()
        tensor([-1.0000,  1.0000])

    Reference: Ioffe, Szegedy. Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate
    Shift. ICML 2015.
    """
    return nn.BatchNorm2d(num_features, eps=1e-5, momentum=0.1)
