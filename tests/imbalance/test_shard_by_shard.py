"""Samplers over shards: what is drawn stays the sampler's, few shards are read at a time, and processes share."""

import math

import pytest
import torch

from equipoise.imbalance import (
    ClassBalancedSampler,
    DistributedWeightedSampler,
    ProgressiveSampler,
    ShardSampler,
    TargetRatioSampler,
    UniformSampler,
    shard_by_shard,
)

SHARDS, EACH = 20, 100
CLASSES = torch.tensor([0] * 70 + [1] * 25 + [2] * 5)  # of a shard's samples
LABELS = torch.cat([CLASSES[torch.randperm(EACH, generator=torch.Generator().manual_seed(i))] for i in range(SHARDS)])
OF_SHARD = torch.arange(SHARDS).repeat_interleave(EACH)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_an_epoch_visits_what_the_sampler_draws():
    for sampler in (UniformSampler(LABELS), ClassBalancedSampler(LABELS), DistributedWeightedSampler.to_ratio(LABELS)):
        drawn = sampler.order(generator())
        visited = shard_by_shard(drawn, OF_SHARD, 64, generator(1))
        assert not torch.equal(drawn, visited) and torch.equal(drawn.sort().values, visited.sort().values)


def test_every_image_comes_once_and_few_shards_are_open_at_a_time():
    window = 150
    order = shard_by_shard(UniformSampler(LABELS).order(generator()), OF_SHARD, window, generator(1))
    assert sorted(order.tolist()) == list(range(len(LABELS)))
    at_a_time = [len(OF_SHARD[order[i : i + EACH]].unique()) for i in range(0, len(order), EACH)]
    # places i to i + EACH have samples whose turn came at most a window before, and a window later at the latest
    assert max(at_a_time) <= math.ceil((EACH + 2 * window) / EACH) + 1
    assert min(at_a_time) > 1, "shards are mixed"


def test_neighbours_of_a_shard_do_not_stay_together():
    order = shard_by_shard(torch.arange(len(LABELS)), OF_SHARD, 500, generator())
    assert (order.diff() == 1).double().mean() < 0.01  # by chance one in 500


def test_repeats_are_spread_over_the_epoch():
    """A sample that comes 50 times comes in all parts of the epoch: a part without it has a chance of 0.75⁵⁰."""
    order = torch.cat([torch.arange(1_000), torch.full((50,), 7)])
    places = (shard_by_shard(order, OF_SHARD, 64, generator()) == 7).nonzero().flatten()
    assert len(places) == 51 and (torch.histc(places.double(), 4, 0, len(order)) > 0).all()


@pytest.mark.parametrize("ratio", [1.0, 3.0])
def test_classes_have_their_shares(ratio):
    """Drawn by weight, so that each class's visits are binomial; the largest class has `ratio` times the smallest's."""
    n = 6_000
    counts = LABELS.bincount().double()
    q = math.log(ratio) / math.log(counts.max() / counts.min())
    share = (counts**q) / (counts**q).sum()
    sampler = ShardSampler(DistributedWeightedSampler.to_ratio(LABELS, ratio, n), OF_SHARD, rank=0, num_replicas=1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        found = LABELS[list(sampler)].bincount()
        bound = 5 * (n * share * (1 - share)).sqrt()  # five standard deviations: one in two million
        assert ((found - n * share).abs() < bound).all()


def test_balance_holds_within_the_epoch():
    """Every eighth of a class-balanced epoch is balanced too, within five standard deviations of a multinomial."""
    order = shard_by_shard(ClassBalancedSampler(LABELS).order(generator()), OF_SHARD, 200, generator(1))
    for part in order.chunk(8):
        found = LABELS[part].bincount(minlength=3)
        assert ((found - len(part) / 3).abs() < 5 * math.sqrt(len(part) * 2 / 9)).all()


def epoch_of(processes, state=None, take=None, epoch=4):
    """What each process visits, and the state after `take` samples each."""
    visited, after = [], None
    for rank in range(processes):
        own = TargetRatioSampler(LABELS, ratio=2.0, seed=3)
        sampler = ShardSampler(own, OF_SHARD, 128, rank=rank, num_replicas=processes)
        if state is None:
            sampler.set_epoch(epoch)
        else:
            sampler.load_state_dict(state)
        indices = iter(sampler)
        visited.append([index for _, index in zip(range(take or len(LABELS)), indices, strict=False)])
        after = sampler.state_dict()
    return visited, after


@pytest.mark.parametrize("processes", [1, 2, 3, 4])
def test_processes_share_an_epoch_without_repetition(processes):
    (alone,), _ = epoch_of(1)
    visited, _ = epoch_of(processes)
    shared = sorted(index for each in visited for index in each)
    padding = -len(alone) % processes
    assert len(shared) == len(alone) + padding
    if not padding:
        assert shared == sorted(alone)


@pytest.mark.parametrize(("before", "after"), [(4, 2), (2, 4), (4, 1), (1, 4)])
def test_an_epoch_goes_on_with_another_number_of_processes(before, after):
    (alone,), _ = epoch_of(1)
    first, state = epoch_of(before, take=120)
    rest, _ = epoch_of(after, state=state)
    assert sorted(index for each in first + rest for index in each) == sorted(alone)
    assert len(state) == 3 and state["position"] == 120 * before


def test_a_sampler_that_follows_training_is_told():
    sampler = ShardSampler(ProgressiveSampler(LABELS, epochs=10), OF_SHARD, rank=0, num_replicas=1)
    shares = []
    for epoch in (0, 9):
        sampler.set_epoch(epoch)
        shares.append(LABELS[list(sampler)].bincount().double() / len(LABELS))
    assert shares[0][2] < 0.06 and shares[1][2] > 0.25, "from a share of 5 % to nearly a third"


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="window must be a whole number, at least 1"):
        ShardSampler(UniformSampler(LABELS), OF_SHARD, 0)
    with pytest.raises(ValueError, match="shards must be a number for each of the 2000 samples"):
        ShardSampler(UniformSampler(LABELS), OF_SHARD[:3])
