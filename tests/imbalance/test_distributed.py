from collections import Counter

import numpy as np
import pytest
import torch

from equipoise.imbalance import DistributedWeightedSampler


def test_samples_come_as_often_as_their_weights_say():
    weights = [0.0, 1.0, 2.0, 0.0, 5.0, 0.0]
    seen = Counter(DistributedWeightedSampler(weights, 40_000))
    assert set(seen) == {1, 2, 4}
    # 1/8, 2/8 and 5/8 of 40,000
    np.testing.assert_allclose([seen[1], seen[2], seen[4]], [5000, 10_000, 25_000], rtol=0.04)


@pytest.mark.parametrize("drawn", [0.0, 1 - 2**-53])
def test_a_weight_of_zero_is_never_drawn(monkeypatch, drawn):
    monkeypatch.setattr(torch, "rand", lambda n, **options: torch.full((n,), drawn, dtype=torch.float64))
    for scale in (1e-300, 0.1, 1.0, 3e200):
        assert set(DistributedWeightedSampler([0.0, scale, 0.0])) == {1}


@pytest.mark.parametrize("processes", [1, 2, 3, 7])
def test_processes_share_one_order(processes):
    weights, common = np.arange(1, 21) / 7, list(DistributedWeightedSampler(np.arange(1, 21) / 7, 50, seed=3))
    parts = [
        list(DistributedWeightedSampler(weights, 50, seed=3, rank=rank, num_replicas=processes))
        for rank in range(processes)
    ]
    assert {len(part) for part in parts} == {-(-50 // processes)}
    assert [i for turn in zip(*parts, strict=True) for i in turn][:50] == common


def test_length():
    assert len(DistributedWeightedSampler([1.0, 1.0, 1.0])) == 3
    assert len(DistributedWeightedSampler([1.0, 1.0, 1.0], 10, num_replicas=4)) == 3


def test_scale_of_the_weights_does_not_matter():
    weights = np.array([1.0, 3.0, 2.0])
    assert list(DistributedWeightedSampler(weights * 1e-300, 30)) == list(DistributedWeightedSampler(weights, 30))


@pytest.mark.parametrize("weights", [[], [1.0, -1.0], [1.0, float("nan")], [float("inf")], [0.0, 0.0], [[1.0]]])
def test_weights_are_checked(weights):
    with pytest.raises(ValueError, match="weights"):
        DistributedWeightedSampler(weights)


def test_num_samples_is_checked():
    with pytest.raises(ValueError, match="num_samples"):
        DistributedWeightedSampler([1.0], 0)
