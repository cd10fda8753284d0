"""AutoAugment's policies for CIFAR-10 and ImageNet."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from ...core import checks, register
from ._base import LARGEST_IMAGE, Augment, check_images, check_switch
from ._on_gpu import operated_and_moved, suits
from ._operations import OPERATIONS, operate
from .crop_flip import draw_moves, moved
from .cutout import cutout
from .resized_crop import Range, ResizedCrop, check_range

# Sub-policies: two operations each, with the probability and the level of each. From the paper's appendix.
POLICIES = {
    "cifar10": """
        Invert 0.1 7        Contrast 0.2 6
        Rotate 0.7 2        TranslateX 0.3 9
        Sharpness 0.8 1     Sharpness 0.9 3
        ShearY 0.5 8        TranslateY 0.7 9
        AutoContrast 0.5 8  Equalize 0.9 2
        ShearY 0.2 7        Posterize 0.3 7
        Color 0.4 3         Brightness 0.6 7
        Sharpness 0.3 9     Brightness 0.7 9
        Equalize 0.6 5      Equalize 0.5 1
        Contrast 0.6 7      Sharpness 0.6 5
        Color 0.7 7         TranslateX 0.5 8
        Equalize 0.3 7      AutoContrast 0.4 8
        TranslateY 0.4 3    Sharpness 0.2 6
        Brightness 0.9 6    Color 0.2 8
        Solarize 0.5 2      Invert 0.0 3
        Equalize 0.2 0      AutoContrast 0.6 0
        Equalize 0.2 8      Equalize 0.6 4
        Color 0.9 9         Equalize 0.6 6
        AutoContrast 0.8 4  Solarize 0.2 8
        Brightness 0.1 3    Color 0.7 0
        Solarize 0.4 5      AutoContrast 0.9 3
        TranslateY 0.9 9    TranslateY 0.7 9
        AutoContrast 0.9 2  Solarize 0.8 3
        Equalize 0.8 8      Invert 0.1 3
        TranslateY 0.7 9    AutoContrast 0.9 1
    """,
    "imagenet": """
        Posterize 0.4 8     Rotate 0.6 9
        Solarize 0.6 5      AutoContrast 0.6 5
        Equalize 0.8 8      Equalize 0.6 3
        Posterize 0.6 7     Posterize 0.6 6
        Equalize 0.4 7      Solarize 0.2 4
        Equalize 0.4 4      Rotate 0.8 8
        Solarize 0.6 3      Equalize 0.6 7
        Posterize 0.8 5     Equalize 1.0 2
        Rotate 0.2 3        Solarize 0.6 8
        Equalize 0.6 8      Posterize 0.4 6
        Rotate 0.8 8        Color 0.4 0
        Rotate 0.4 9        Equalize 0.6 2
        Equalize 0.0 7      Equalize 0.8 8
        Invert 0.6 4        Equalize 1.0 8
        Color 0.6 4         Contrast 1.0 8
        Rotate 0.8 8        Color 1.0 2
        Color 0.8 8         Solarize 0.8 7
        Sharpness 0.4 7     Invert 0.6 8
        ShearX 0.6 5        Equalize 1.0 9
        Color 0.4 0         Equalize 0.6 3
        Equalize 0.4 7      Solarize 0.2 4
        Solarize 0.6 5      AutoContrast 0.6 5
        Invert 0.6 4        Equalize 1.0 8
        Color 0.6 4         Contrast 1.0 8
        Equalize 0.8 8      Equalize 0.6 3
    """,
}
# Strength at level 0 and at level 10; the sign of the first five is random.
STRENGTHS = {
    **dict.fromkeys(("ShearX", "ShearY"), (0.0, 0.3)),
    **dict.fromkeys(("TranslateX", "TranslateY"), (0.0, 10 / 32)),
    "Rotate": (0.0, 30.0),
    "Solarize": (256.0, 0.0),
    "Posterize": (8.0, 4.0),
    **dict.fromkeys(("Contrast", "Color", "Brightness", "Sharpness"), (0.1, 1.9)),
}


@cache  # a copy to the device in every step would wait for it
def policy_table(policy: str, device: torch.device) -> Tensor:
    """Operation, probability and strength of each sub-policy's two operations: (25, 2, 3)."""
    rows = []
    for line in POLICIES[policy].split("\n")[1:-1]:
        words = line.split()
        for name, probability, level in (words[:3], words[3:]):
            low, high = STRENGTHS.get(name, (0.0, 0.0))
            rows.append((OPERATIONS.index(name), float(probability), low + int(level) / 10 * (high - low)))
    return torch.tensor(rows, device=device).view(-1, 2, 3)


def autoaugment(images: Tensor, policy: str = "cifar10", *, generator: torch.Generator | None = None) -> Tensor:
    """Apply a random sub-policy to each uint8 image (N, 1 or 3, h, w) -> (N, c, h, w). See `AutoAugment`."""
    return operated(images, *draw_operations(len(images), policy, images.device, generator))


def draw_operations(
    n: int, policy: str, device: torch.device, generator: torch.Generator | None
) -> tuple[Tensor, Tensor]:
    """Of n images, the two operations (n, 2) of a random sub-policy, as `operate` takes them, and their strengths."""
    table = policy_table(policy, device)
    drawn = table[torch.randint(len(table), (n,), device=device, generator=generator)]
    happens, sign = torch.rand(2, n, 2, device=device, generator=generator)
    operation, probability, strength = drawn.unbind(2)
    operation = torch.where(happens < probability, operation.long(), -1)
    return operation, torch.where((operation < 5) & (sign < 0.5), -strength, strength)


def operated(images: Tensor, operation: Tensor, strength: Tensor) -> Tensor:
    """Both operations of each image, one after the other."""
    for slot in range(2):
        images = operate(images, operation[:, slot], strength[:, slot])
    return images


@register("autoaugment", kind="augment", year=2018, arxiv="1805.09501", later=("cutout",))
class AutoAugment(Augment):
    r"""Changes each image's colours and geometry by two operations of a searched policy, then shifts and mirrors it.

    .. math:: \tilde x_n = \mathrm{crop\_flip}\bigl(o_{k2}(o_{k1}(x_n))\bigr), \qquad k \sim U\{1, …, 25\}

    with :math:`o_{k1}, o_{k2}` the two operations of sub-policy k, each done with its own probability and strength.

    Args:
        policy: "cifar10" or "imagenet": on which data the sub-policies were found. The paper uses the first for
            CIFAR-100 as well.
        pad: largest shift in pixels afterwards, filling with black; 4 in the paper for CIFAR, 0 for none.
        area: where given, a box with this share of the image (smallest, largest) is cut out and scaled before, as by
            `resized_crop`. For ImageNet, (0.1, 1.0) together with pad=0.
        flip: whether to mirror half of the images; off for digits and letters, which a mirror changes.
        cutout: side in pixels of a square hole that each image gets at the end (Cutout); 16 in the paper for CIFAR, 0
            for none.

    Differs from the paper: no Cutout unless you ask for it. Strengths are those of the authors' code (level / 10 of the
    way through the range in the paper's table), except that Posterize keeps 8 − 0.4 · level bits, rounded up: the table
    says 4 to 8, the code keeps four fewer. The code's translations, of level pixels in 32, grow with the image; the
    paper has up to 150 in 331. Their code has 95 sub-policies for CIFAR-10, the paper the 25 used here. They fill
    with the mean colour, here it is grey, 128. Like theirs, geometric operations take the nearest pixel.

    Example:
        >>> AutoAugment()(torch.zeros(128, 3, 32, 32, dtype=torch.uint8)).shape
        torch.Size([128, 3, 32, 32])
        >>> AutoAugment("imagenet", pad=0, area=(0.1, 1.0))
        AutoAugment(policy='imagenet', pad=0, area=(0.1, 1.0), flip=True, cutout=0)

    Reference: Cubuk, Zoph, Mané, Vasudevan, Le. AutoAugment: Learning Augmentation Strategies from Data. CVPR 2019.
    """

    def __init__(
        self, policy: str = "cifar10", pad: int = 4, area: Range | None = None, flip: bool = True, cutout: int = 0
    ) -> None:
        self.policy = checks.one_of("policy", policy, tuple(POLICIES))
        self.pad = checks.whole("pad", pad, 0, LARGEST_IMAGE)
        self.area = None if area is None else check_range("area", area, 1.0)
        self.flip = check_switch("flip", flip)
        self.cutout = checks.whole("cutout", cutout, 0, LARGEST_IMAGE)

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        check_images("AutoAugment", images)
        if images.dtype != torch.uint8 or images.shape[1] not in (1, 3):
            raise ValueError(
                f"AutoAugment expects uint8 images of 1 or 3 channels, got {images.dtype} with {images.shape[1]}"
            )
        if self.crop is not None:
            images = self.crop(images, generator)
        return self.after_crop(images, generator)

    @property
    def crop(self) -> ResizedCrop | None:
        return None if self.area is None else ResizedCrop(self.area, flip=False)

    def after_crop(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        n, device = len(images), images.device
        operation, strength = draw_operations(n, self.policy, device, generator)
        corner, mirrored = draw_moves(n, self.pad, self.flip, device, generator)
        if suits(images, strength):
            images = operated_and_moved(images, operation, strength, self.pad, corner, mirrored)
        else:
            images = moved(operated(images, operation, strength), self.pad, corner, mirrored)
        return cutout(images, self.cutout, generator=generator) if self.cutout else images
