"""A box of each image replaced by another image's."""

from __future__ import annotations

from typing import NoReturn

import torch
from torch import Tensor, nn

from ..core import checks, register
from ._base import Mix, Mixed, MixPlan, beta_sample, random_partner


def kept_pixels(lam: Tensor, height: int, width: int, generator: torch.Generator | None = None) -> Tensor:
    """lam (N,) -> (N, height, width), False in a box around a random centre of about 1 - lam of the area."""
    centre = torch.rand((2, len(lam), 1), dtype=lam.dtype, device=lam.device, generator=generator)
    half = (1 - lam).sqrt()[:, None] / 2
    rows = _inside(centre[0], half, height)
    columns = _inside(centre[1], half, width)
    return ~(rows[:, :, None] & columns[:, None, :])


def _inside(centre: Tensor, half: Tensor, size: int) -> Tensor:
    """(N, size), True within `half` of `centre`, both (N, 1) shares of `size`, in whole pixels."""
    position = torch.arange(size, device=centre.device)
    centre, half = (centre * size).floor(), (half * size).floor()
    return (position >= centre - half) & (position < centre + half)


@register(
    "cutmix",
    kind="mix",
    year=2019,
    arxiv="1905.04899",
    space={"alpha": {"values": (0.5, 1.0, 2.0), "scale": "log"}},
    examples=({}, {"share": 0.5}, {"stop": 0.5}),
    later=("share", "stop"),
)
class CutMix(Mix):
    r"""Replaces a box of each image by the same box of another; labels are shared by area.

    .. math:: \tilde x = M \odot x + (1 - M) \odot x_\pi, \qquad
        \tilde\ell = \lambda \, \ell(y) + (1 - \lambda) \, \ell(y_\pi), \qquad \lambda = \mathrm{mean}(M)

    M is 0 in a box with sides :math:`\sqrt{1 - b}` of the image's, :math:`b \sim \mathrm{Beta}(\alpha, \alpha)`, around
    a uniformly drawn pixel, cut off at the border; hence `lam` is the share of pixels that were kept.

    Args:
        alpha: of the Beta distribution; 1 as in the paper.
        share: of the images that are cut, drawn anew for each; the others stay whole. The paper has 0.5 on CIFAR and 1
            on ImageNet.
        stop: the share of training after which all images stay whole; 1 as in the paper. In a loop of your own, set
            ``mix.progress`` to the share that is done.

    Differs from the paper: it draws one box for the batch, and whether the batch is cut at all; here every sample has
    its own.

    Example:
        >>> mixed = CutMix()(torch.arange(4.0).view(4, 1, 1, 1).expand(4, 3, 8, 8), torch.tensor([0, 1, 0, 1]))
        >>> kept = (mixed.inputs[:, 0] == torch.arange(4.0).view(4, 1, 1)).float().mean((1, 2))
        >>> bool((kept == mixed.lam).where(mixed.partner != torch.arange(4), True).all())
        True

    Reference: Yun, Han, Oh, Chun, Choe, Yoo. CutMix: Regularization Strategy to Train Strong Classifiers with
    Localizable Features. ICCV 2019.
    """

    def __init__(self, alpha: float = 1.0, share: float = 1.0, stop: float = 1.0) -> None:
        super().__init__()
        self.alpha = checks.above("alpha", alpha, 0)
        self.share = checks.between("share", share, 0, 1)
        self.stop = checks.between("stop", stop, 0, 1)

    def forward(self, x: Tensor, target: Tensor) -> Mixed:
        if not self.training:
            return super().forward(x, target)
        if x.dim() != 4:
            raise ValueError(f"{type(self).__name__} expects images of shape (N, c, h, w), got {tuple(x.shape)}")
        left = beta_sample(self.alpha, len(target), target.device, self.generator)
        partner = self.partner(target)
        keep = kept_pixels(self._of_those_cut(left), x.shape[2], x.shape[3], self.generator)
        lam = keep.float().mean((1, 2))
        return Mixed(target, MixPlan(partner, lam, lam), torch.where(keep[:, None], x, x[partner]))

    def partner(self, target: Tensor) -> Tensor:
        """Whose box each image is given: (N,)."""
        return random_partner(target, self.generator)

    def _of_those_cut(self, left: Tensor) -> Tensor:
        """What is left of each image (N,), which is all of it for those that are not cut."""
        if self.share == self.stop == 1:
            return left
        share = self.share * (self.progress < self.stop)  # a tensor where progress is one: nothing waits for it
        whole = torch.rand(len(left), dtype=left.dtype, device=left.device, generator=self.generator) >= share
        return left.masked_fill(whole, 1.0)

    def at(self, module: nn.Module, target: Tensor) -> NoReturn:
        """Boxes and labels depend on the size of the image, which is not known before it is seen."""
        raise ValueError(f"{type(self).__name__} cuts images: call it on them, mixed = mix(x, target)")
