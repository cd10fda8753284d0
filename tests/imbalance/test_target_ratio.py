import numpy as np
import pytest
import torch

from equipoise.imbalance import DistributedWeightedSampler, TargetRatioSampler

LABELS = torch.tensor([0] * 810 + [1] * 90 + [2] * 10)  # 81 to 1


@pytest.mark.parametrize("ratio", [1.0, 3.0, 9.0, 81.0])
def test_the_largest_class_comes_so_many_times_as_often_as_the_smallest(ratio):
    places = LABELS[list(TargetRatioSampler(LABELS, ratio))].bincount().double()
    shares = np.array([1.0, ratio**-0.5, ratio**-1.0])  # 90 is the geometric mean of 810 and 10
    np.testing.assert_allclose(places, 910 * shares / shares.sum(), atol=1.0)


@pytest.mark.parametrize("ratio", [81.0, 1000.0])
def test_the_ratio_of_the_data_or_more_leaves_them_as_they_are(ratio):
    assert sorted(TargetRatioSampler(LABELS, ratio)) == list(range(910))


def test_balanced_data_stay_balanced():
    assert sorted(TargetRatioSampler([0, 1, 2, 0, 1, 2], 4.0)) == list(range(6))


def test_the_weighted_sampler_has_the_same_shares_on_average():
    sampler = DistributedWeightedSampler.to_ratio(LABELS, 9.0, 40_000, seed=1)
    shares = LABELS[list(sampler)].bincount().double() / 40_000
    np.testing.assert_allclose(shares, np.array([9, 3, 1]) / 13, atol=0.01)
    assert len(DistributedWeightedSampler.to_ratio(LABELS, rank=0, num_replicas=2)) == 455


@pytest.mark.parametrize("ratio", [0.5, -1.0, float("nan")])
@pytest.mark.parametrize("make", [TargetRatioSampler, DistributedWeightedSampler.to_ratio])
def test_ratio_is_checked(make, ratio):
    with pytest.raises(ValueError, match="ratio"):
        make(LABELS, ratio)
