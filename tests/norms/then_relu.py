"""Maps and norms for the tests of a norm, a shortcut and a ReLU as one."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from equipoise import native
from equipoise.norms import BatchGroupNorm2d, BatchNorm2d, BatchRenorm2d, GhostBatchNorm2d, GroupNorm2d

# (N, C, H, W) and examples of a ghost
CASES = {
    "three channels": ((8, 3, 4, 4), 2),
    "a smaller last ghost": ((9, 5, 3, 3), 4),
    "more channels than fill a line": ((5, 70, 2, 2), 16),
    "single examples": ((6, 3, 7, 7), 1),
    "one sample": ((1, 6, 5, 5), 16),
    "one position": ((9, 10, 1, 1), 4),
    "more channels than a tile has": ((2, 1030, 3, 3), 2),
    "past the cache": ((64, 16, 40, 40), 16),
    "past the cache and odd": ((51, 431, 7, 7), 16),
}
NORMS = {
    "batch": BatchNorm2d,
    "ghost": GhostBatchNorm2d,
    "group": partial(GroupNorm2d, groups=4),
    "batch_group": partial(BatchGroupNorm2d, groups=4),
    "batch_renorm": partial(BatchRenorm2d, warmup=0, r_steps=1, d_steps=1),  # it corrects from the second batch on
}

NEEDS_C = pytest.mark.skipif(native.library() is None, reason="the package was installed without a C compiler")
with_and_without_shortcut = pytest.mark.parametrize("with_shortcut", [False, True], ids=["alone", "shortcut"])
every_norm = pytest.mark.parametrize("name", NORMS)
of_single_channels = pytest.mark.parametrize("name", ["batch", "ghost"])


def maps(shape, layout, with_shortcut):
    """x, a shortcut or None, and a gradient."""
    x, shortcut, grad = (
        (torch.randn(shape) * 2 + mean).contiguous(memory_format=layout).requires_grad_(wanted)
        for mean, wanted in ((1.5, True), (0.0, True), (0.0, False))
    )
    return x, shortcut if with_shortcut else None, grad


def make_norm(name, channels, ghost=16, **options):
    """A norm with the same γ and β each time."""
    ghosts = {"ghost_size": ghost} if name == "ghost" else {}
    norm = NORMS[name](channels, **ghosts, **options)
    generator = torch.Generator().manual_seed(3)
    for parameter in norm.parameters():
        nn.init.normal_(parameter, generator=generator)
    return norm


def step_by_step(norm, x, shortcut=None):
    y = norm(x)
    return F.relu(y if shortcut is None else y + shortcut)


def gradients(y, grad, *leaves):
    return torch.autograd.grad(y, [t for t in leaves if t is not None and t.requires_grad], grad)


def assert_same_bits(found, wanted):
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, atol=0, rtol=0, equal_nan=True)
