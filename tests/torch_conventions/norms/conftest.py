"""Every question of PyTorch's own tests is put to all five norms. docs/results/conventions.md counts the answers."""

import pytest
import torch
import torch.nn.functional as F

from equipoise import native
from equipoise.norms import (
    BatchGroupNorm2d,
    BatchNorm2d,
    BatchRenorm2d,
    GhostBatchNorm2d,
    GroupNorm2d,
)

C = 6
NORMS = {
    "batch": lambda **options: BatchNorm2d(C, **options),
    "ghost": lambda **options: GhostBatchNorm2d(C, 4, **options),
    "batch_group": lambda **options: BatchGroupNorm2d(C, 3, 2, **options),
    "group": lambda **options: GroupNorm2d(C, 3, **options),
    "batch_renorm": lambda **options: BatchRenorm2d(C, **options),
}
WHOLE_BATCH = ("batch", "batch_renorm")
SHAPES = {"2d": (8, C), "3d": (8, C, 5), "4d": (8, C, 3, 4), "5d": (8, C, 2, 3, 2)}
DTYPES = [torch.float32, torch.float64]


@pytest.fixture(params=[True, False], ids=["kernels", "PyTorch alone"], autouse=True)
def _kernels(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(native, "library", lambda: None)
    elif native.library() is None:
        pytest.skip("the package was installed without a C compiler")


@pytest.fixture(params=NORMS)
def kind(request):
    return request.param


@pytest.fixture
def make(kind):
    return NORMS[kind]


@pytest.fixture
def norm(make):
    made = make()
    with torch.no_grad():
        made.weight.uniform_(0.5, 1.5)
        made.bias.normal_()
    return made


def expected(kind, x, weight=None, bias=None):
    """Training by PyTorch's functions, in float64."""
    x, weight, bias = (t if t is None else t.detach().double() for t in (x, weight, bias))
    size = {"ghost": 4, "batch_group": 2, "group": 1}.get(kind, len(x))
    if kind in ("batch_group", "group"):
        blocks = [part.transpose(0, 1).flatten(1)[None] for part in x.split(size)]  # examples become positions
        blocks = [F.group_norm(b, 3).view(C, size, *x.shape[2:]).transpose(0, 1) for b in blocks]
    else:
        blocks = [F.batch_norm(part, None, None, training=True) for part in x.split(size)]
    shape = (1, C, *[1] * (x.dim() - 2))
    y = torch.cat(blocks)
    y = y if weight is None else y * weight.view(shape)
    return y if bias is None else y + bias.view(shape)


def trained(norm, *shape, batches=3):
    for i in range(batches):
        norm(torch.randn(shape) * 2 + i)
    return norm


def grads(y, *leaves):
    return torch.autograd.grad(y.square().sum(), leaves)
