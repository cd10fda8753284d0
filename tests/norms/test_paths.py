"""Which γ and β reach the output unnormalized, for the four kinds of network the paper speaks of."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from equipoise.models import create_model
from equipoise.norms import replace_norm, unshielded_affine


def conv(inner, outer, size=3):
    return nn.Sequential(
        nn.Conv2d(inner, outer, size, padding=size // 2, bias=False), nn.BatchNorm2d(outer), nn.ReLU(True)
    )


class Inception(nn.Module):
    """Branches that are concatenated: every path out of a block crosses the norms of the next."""

    def __init__(self, inner, outer):
        super().__init__()
        self.one = conv(inner, outer, 1)
        self.three = nn.Sequential(conv(inner, outer, 1), conv(outer, outer))
        self.pool = nn.Sequential(nn.AvgPool2d(3, 1, 1), conv(inner, outer, 1))

    def forward(self, x):
        return torch.cat([self.one(x), self.three(x), self.pool(x)], 1)


class Dense(nn.Module):
    """Norm before convolution, and every map goes on to all later layers."""

    def __init__(self, layers=3, growth=4):
        super().__init__()
        self.stem = nn.Conv2d(3, growth, 3, padding=1)
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(growth * (i + 1)), nn.ReLU(), nn.Conv2d(growth * (i + 1), growth, 3, padding=1)
            )
            for i in range(layers)
        )
        self.norm5, self.fc = nn.BatchNorm2d(growth * (layers + 1)), nn.Linear(growth * (layers + 1), 2)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return self.fc(F.relu(self.norm5(x)).mean((2, 3)))


IMAGE = torch.randn(1, 3, 32, 32)


def test_a_plain_network_has_its_last_norm_only():
    network = nn.Sequential(conv(3, 4), conv(4, 4), conv(4, 4), nn.Flatten(), nn.LazyLinear(2))
    assert unshielded_affine(network, IMAGE) == ["2.1"]


def test_resnet50_has_the_ends_of_its_last_stage():
    network = create_model("resnet50", num_classes=2)
    blocks = [f"stage4.{i}.norm3" for i in range(3)]
    # the projections between the stages are norms, which shield all before them
    assert sorted(unshielded_affine(network, torch.randn(1, 3, 64, 64))) == sorted([*blocks, "stage4.0.shortcut.1"])


def test_shortcuts_without_norms_leave_every_block_open():
    network = create_model("resnet32", num_classes=2)
    ends = [n for n, m in network.named_modules() if n.endswith("norm2")]
    names = unshielded_affine(network, IMAGE)
    assert len(ends) == 15 and sorted(names) == sorted([*ends, "stem.1"])


def test_inception_has_the_last_norms_of_its_last_block():
    network = nn.Sequential(conv(3, 4), Inception(4, 4), Inception(12, 4), nn.Flatten(), nn.LazyLinear(2))
    assert unshielded_affine(network, IMAGE) == ["2.one.1", "2.three.1.1", "2.pool.1.1"]


def test_densenet_has_its_final_norm_only():
    assert unshielded_affine(Dense(), IMAGE) == ["norm5"]


def test_our_norms_layer_norms_and_norms_without_affine_shield():
    network = create_model("resnet32", num_classes=2)
    before = unshielded_affine(network, IMAGE)
    replace_norm(network, "batch_group(groups=4)")
    assert unshielded_affine(network, IMAGE) == before
    shielded = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2))
    assert unshielded_affine(shielded, torch.randn(2, 4)) == ["2"]
    shielded[2] = nn.BatchNorm1d(4, affine=False)
    assert unshielded_affine(shielded, torch.randn(2, 4)) == []


def test_frozen_networks_other_outputs_and_no_trace():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.BatchNorm1d(3), nn.BatchNorm1d(3), nn.BatchNorm1d(3)

        def forward(self, x, y):
            return {"first": [self.a(x)], "second": (self.b(self.c(y)), None)}

    network = Two().requires_grad_(False).train()
    with torch.no_grad():
        assert unshielded_affine(network, (torch.randn(2, 3), torch.randn(2, 3))) == ["a", "b"]
    assert network.training and not network.a._forward_hooks and network.a.num_batches_tracked == 0
    with pytest.raises(ValueError, match="Linear has no norms"):
        unshielded_affine(nn.Linear(2, 2), torch.randn(1, 2))
