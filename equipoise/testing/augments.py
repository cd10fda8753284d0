"""What every augmentation must do, at each of its examples."""

from __future__ import annotations

import torch
from torch import Tensor

from ..core import Card
from ._cases import Case, cases_of, require, run, same


def check_augment(augment: Card | str) -> None:
    """Run all `CHECKS` on a registered augmentation, at each of its examples."""
    run(CHECKS, cases_of(augment, "augment"))


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def some_images(*shape: int) -> Tensor:
    return torch.randint(0, 256, shape, generator=seeded(9)).to(torch.uint8)


def pixels_stay_pixels(case: Case) -> None:
    for shape in ((6, 3, 32, 32), (1, 3, 32, 32), (5, 1, 8, 8), (3, 3, 20, 13), (2, 1, 1, 1), (0, 3, 8, 8)):
        images = some_images(*shape)
        before = images.clone()
        result = case.build()(images, seeded())
        alike = result.dtype == torch.uint8 and result.shape[:2] == images.shape[:2]
        require(alike, f"images of bytes {shape} became {result.dtype} {tuple(result.shape)}")
        require(torch.equal(images, before), "it wrote into its input")


def the_generator_decides(case: Case) -> None:
    images, augment, before = some_images(32, 3, 8, 8), case.build(), torch.get_rng_state()
    same(augment(images, seeded(1)), augment(images, seeded(1)), "with the same generator it", rtol=0, atol=0)
    require(torch.equal(torch.get_rng_state(), before), "it drew from PyTorch's global generator")


def any_memory_format(case: Case) -> None:
    images = some_images(8, 3, 16, 16)
    turned = images.contiguous(memory_format=torch.channels_last)
    same(case.build()(turned, seeded()), case.build()(images, seeded()), "with channels last it", rtol=0, atol=0)


def nothing_is_read_back_from_the_device(case: Case) -> None:
    for channels in (1, 3):  # meta tensors have no values: any look at one fails
        case.build()(torch.empty(8, channels, 32, 32, dtype=torch.uint8, device="meta"))


def neutral_changes_nothing(case: Case) -> None:
    if case.card.neutral:
        images = some_images(6, 3, 20, 13)
        same(case.build(**case.card.neutral)(images), images, f"at {dict(case.card.neutral)} it", rtol=0, atol=0)


CHECKS = (
    pixels_stay_pixels,
    the_generator_decides,
    any_memory_format,
    nothing_is_read_back_from_the_device,
    neutral_changes_nothing,
)
