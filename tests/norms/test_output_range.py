"""The range of norms' outputs, against ±√(n - 1)."""

import math

import pytest
import torch
from torch import nn

from equipoise.norms import BatchGroupNorm2d, GhostBatchNorm2d, output_range, set_example_weight


def test_the_bound_is_reached_by_one_against_all():
    x = torch.tensor([0.0] * 9 + [1e4]).view(10, 1, 1, 1)  # the example of the paper's proof
    (seen,) = output_range(nn.Sequential(nn.BatchNorm2d(1)), [x])
    assert seen.bound == 3.0 and seen.training[1] == pytest.approx(3.0, abs=1e-4)
    assert seen.training[0] == pytest.approx(-1 / 3, abs=1e-4)
    assert seen.inference == (0.0, pytest.approx(1e4, rel=1e-4))  # mean 0, variance 1: nothing binds it


def test_training_keeps_the_bound_and_inference_does_not():
    network = nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3), GhostBatchNorm2d(4, 2), nn.Flatten()
    )
    batches = [(torch.randn(6, 2, 6, 6) ** 3 * 5, None) for _ in range(4)]
    ranges = output_range(network, batches)
    assert [r.name for r in ranges] == ["1", "4"]
    assert [r.bound for r in ranges] == [math.sqrt(6 * 16 - 1), math.sqrt(2 * 4 - 1)]
    for seen in ranges:
        assert -seen.bound <= seen.training[0] < seen.training[1] <= seen.bound
    assert max(-ranges[1].inference[0], ranges[1].inference[1]) > ranges[1].bound


def test_gamma_and_beta_do_not_count_and_weighing_narrows():
    norm = GhostBatchNorm2d(3, 2)
    with torch.no_grad():
        norm.weight.fill_(0.0)
        norm.bias.fill_(100.0)
    network, batches = nn.Sequential(norm), [torch.randn(8, 3, 4, 4) * 9]
    plain = output_range(network, batches)[0].inference
    set_example_weight(network, 0.5)
    weighted = output_range(network, batches)[0].inference
    assert plain[1] > 10 and weighted[1] < plain[1] / 2 and weighted[0] > plain[0] / 2


def test_the_network_is_left_as_it_was():
    network = nn.Sequential(nn.BatchNorm2d(3), BatchGroupNorm2d(3, 1)).eval()
    before = {k: v.clone() for k, v in network.state_dict().items()}
    ranges = output_range(network, (torch.randn(5, 3, 2, 2) for _ in range(2)))
    assert ranges[1].bound == math.sqrt(2 * 3 * 4 - 1)
    assert all(torch.equal(v, before[k]) for k, v in network.state_dict().items())
    assert not network.training and not network[0]._forward_hooks
    with pytest.raises(ValueError, match="Linear has no batch norm"):
        output_range(nn.Linear(2, 2), [])
