"""Random crops of varying size and shape."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ...core import checks, register
from ._base import Augment, check_images, check_switch, coin, read_between
from .inputs import check_size

TRIES = 10  # as in the usual implementation
Range = tuple[float, float]


def resized_crop(
    images: Tensor,
    area: Range = (0.1, 1.0),
    aspect: Range = (0.75, 1.3333),
    size: int | tuple[int, int] | None = None,
    flip: bool = True,
    mode: str = "bilinear",
    *,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Cut a box out of each image and scale it: images (N, c, h, w) -> (N, c, *size). See `ResizedCrop`."""
    n, _, h, w = images.shape
    device = images.device
    out_h, out_w = _output_size(size, (h, w))
    top, left, height, width = random_boxes(n, h, w, area, aspect, device, generator)
    i, j = torch.arange(out_h, device=device), torch.arange(out_w, device=device).expand(n, out_w)
    if flip:
        j = torch.where(coin(n, device, generator), out_w - 1 - j, j)
    rows = positions(i, top, height, out_h)[:, :, None].expand(n, out_h, out_w)
    columns = positions(j, left, width, out_w)[:, None, :].expand(n, out_h, out_w)
    return read_between(images, rows, columns, mode, outside="border")


def _output_size(size: int | tuple[int, int] | None, given: tuple[int, ...]) -> tuple[int, int]:
    return (given[0], given[1]) if size is None else (size, size) if isinstance(size, int) else size


def random_boxes(
    n: int,
    h: int | Tensor,
    w: int | Tensor,
    area: Range,
    aspect: Range,
    device: torch.device,
    generator: torch.Generator | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Top, left, height and width (n, 1) of one box for each of n images of h × w, in whole pixels.

    `h` and `w` may be tensors (n, 1).
    """
    share, shape = torch.rand(2, TRIES, n, 1, device=device, generator=generator)
    h, w = (side.to(share) if isinstance(side, Tensor) else share.new_full((n, 1), side) for side in (h, w))
    pixels = h * w * (area[0] + (area[1] - area[0]) * share)
    ratio = torch.exp(math.log(aspect[0]) + math.log(aspect[1] / aspect[0]) * shape)
    heights, widths = (pixels / ratio).sqrt().round(), (pixels * ratio).sqrt().round()
    fits = (heights >= 1) & (heights <= h) & (widths >= 1) & (widths <= w)
    # instead of trying one after the other: all at once, then the largest box, which always fits; the first that does
    large_h, large_w = largest_boxes(h, w, aspect)
    heights, widths = torch.cat((heights, large_h[None])), torch.cat((widths, large_w[None]))
    first = torch.cat((fits, fits.new_ones(1, n, 1))).byte().argmax(0, keepdim=True)
    height, width = heights.gather(0, first)[0], widths.gather(0, first)[0]
    down, right = torch.rand(2, n, 1, device=device, generator=generator)
    centred = first[0] == TRIES
    top = torch.where(centred, (h - height).div(2, rounding_mode="floor"), (down * (h - height + 1)).floor())
    left = torch.where(centred, (w - width).div(2, rounding_mode="floor"), (right * (w - width + 1)).floor())
    return top, left, height, width


def largest_boxes(h: Tensor, w: Tensor, aspect: Range) -> tuple[Tensor, Tensor]:
    """Heights and widths (n, 1) of the largest boxes with an allowed aspect in images of h × w."""
    low, high = aspect
    height = (w.double() / low).round().minimum(h).clamp_min(1)
    width = (h.double() * high).round().minimum(w).clamp_min(1)
    return height.to(h), width.to(w)


def positions(index: Tensor, start: Tensor, length: Tensor, count: int) -> Tensor:
    """Where along an axis of the image the output's pixels lie: index (m,) or (n, m) of `count` -> (n, m)."""
    return start + ((index + 0.5) * (length / count) - 0.5).clamp_min(0).minimum(length - 1)


@register("resized_crop", kind="augment", year=2015, arxiv="1409.4842")
class ResizedCrop(Augment):
    r"""Cuts a box of random size, shape and place out of each image, scales it to `size`, and mirrors half of them.

    .. math:: \tilde x_n(i, j) = x_n\Bigl(a_n + (i + \tfrac12) \tfrac{h_n}{H} - \tfrac12,\;
              b_n + (f_n(j) + \tfrac12) \tfrac{w_n}{W} - \tfrac12\Bigr), \qquad
              h_n w_n \sim U(A)\, h w, \quad \log \tfrac{w_n}{h_n} \sim U(\log r)

    with A = `area`, r = `aspect`, H × W the output's size, h × w the input's, :math:`(a_n, b_n)` uniform over the
    places where the box lies in the image, and :math:`f_n(j)` either :math:`j` or :math:`W - 1 - j`. Of ten boxes
    drawn, the first that fits into the image is taken; if none does, the largest of an allowed shape, in the middle.

    Args:
        area: the box's smallest and largest share of the image. 10 to 100 % in the paper on loss functions; 8 to
            100 % in its code and in the reference.
        aspect: smallest and largest width : height. 3/4 to 4/3 in both.
        size: the output's (height, width), or the side of a square; None keeps the input's.
        flip: whether to mirror; off for digits and letters, which a mirror changes.
        mode: "bilinear", or "bicubic" as in the code of the paper on loss functions, at about twice the cost on a CPU.

    Where a task keeps images whole (``folder`` with `resize` or `keep`), boxes are cut out of all of an image: h × w
    is its own shape, and without `size` the output has the task's. Where a box is scaled down, an output pixel is a
    weighted mean over all pixels of the box that it covers (antialiasing).

    Differs from the paper: images that a task keeps whole were scaled down before, to the short side that it keeps, if
    theirs was longer. Where a task keeps squares, boxes are of the square; where `size` is smaller than the input, they
    are read at points, without averaging; and positions stay within the box's outermost pixel centres, which is the
    usual bilinear rule, whereas bicubic scaling usually repeats the outermost pixels, where this reads on in the image.

    Example:
        >>> ResizedCrop()(torch.ones(128, 3, 32, 32)).shape
        torch.Size([128, 3, 32, 32])
        >>> ResizedCrop(size=24)(torch.zeros(2, 3, 32, 32, dtype=torch.uint8)).shape
        torch.Size([2, 3, 24, 24])

    Reference: Szegedy et al. Going Deeper with Convolutions. CVPR 2015, section 6. Kornblith, Chen, Lee, Norouzi.
    Why Do Better Loss Functions Lead to Less Transferable Features? NeurIPS 2021, appendix A.1.
    """

    def __init__(
        self,
        area: Range = (0.1, 1.0),
        aspect: Range = (0.75, 1.3333),
        size: int | tuple[int, int] | None = None,
        flip: bool = True,
        mode: str = "bilinear",
    ) -> None:
        self.area = check_range("area", area, 1.0)
        self.aspect = check_range("aspect", aspect, math.inf)
        if size is not None:
            check_size((size, size) if isinstance(size, int) else size)
        self.size = size
        self.flip = check_switch("flip", flip)
        self.mode = checks.one_of("mode", mode, ("bilinear", "bicubic"))

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        check_images("ResizedCrop", images)
        return resized_crop(images, self.area, self.aspect, self.size, self.flip, self.mode, generator=generator)

    @property
    def crop(self) -> ResizedCrop:
        return self

    def after_crop(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return images

    def boxes(self, heights: Tensor, widths: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Boxes for images of these sides (n, 1), as `Ragged.cut` takes them (n, 5)."""
        n, device = len(heights), heights.device
        drawn = random_boxes(n, heights, widths, self.area, self.aspect, device, generator)
        mirrored = coin(n, device, generator) if self.flip else torch.zeros_like(heights)
        return torch.cat((*drawn, mirrored), 1)

    def output_size(self, given: tuple[int, ...]) -> tuple[int, int]:
        """Height and width of the output where the input, or else the task, has those `given`."""
        return _output_size(self.size, given)


def check_range(name: str, value: Any, high: float) -> Range:
    """Two numbers, the smaller one first, above 0 and at most `high`."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(f"{name} must be two numbers, the smallest and the largest, not {value!r}")
    first, last = checks.above(name, value[0], 0), checks.number(name, value[1])
    if not first <= last <= high:
        raise ValueError(f"{name} must rise, above 0 and to at most {high}, not {value!r}")
    return first, last
