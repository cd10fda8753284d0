"""Samplers on 1 to 8 processes, stopped in the middle of an epoch and gone on with by another number of them."""

import numpy as np
import pytest
import torch

from equipoise.imbalance import (
    ClassBalancedSampler,
    DistributedWeightedSampler,
    ProgressiveSampler,
    TargetRatioSampler,
    UniformSampler,
)

LABELS = torch.tensor([0] * 40 + [1] * 13 + [2] * 6 + [3])
MAKERS = {
    "uniform": UniformSampler,
    "class_balanced": ClassBalancedSampler,
    "target_ratio": TargetRatioSampler,
    "progressive": lambda labels, **k: ProgressiveSampler(labels, epochs=10, **k),
    "weighted": lambda labels, **k: DistributedWeightedSampler.to_ratio(labels, 3.0, **k),
}
EPOCHS = 1000


def team(name, size, **options):
    return [MAKERS[name](LABELS, rank=rank, num_replicas=size, **options) for rank in range(size)]


def in_turns(parts):
    """The common order, if each process took its index in turn."""
    return [index for turn in zip(*parts, strict=True) for index in turn]


@pytest.fixture(scope="module")
def epochs():
    """A thousand epochs of the weighted sampler, in the common order (EPOCHS, N)."""
    sampler = MAKERS["weighted"](LABELS, seed=5)
    found = []
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        found.append(list(sampler))
    return np.array(found)


@pytest.mark.parametrize("size", range(1, 9))
def test_a_process_draws_each_sample_as_often_as_its_weight_says(epochs, size):
    n = len(LABELS)
    wanted = np.array([3.0, 3 ** (np.log(13) / np.log(40)), 3 ** (np.log(6) / np.log(40)), 1.0])  # 40^q = 3
    probability = (wanted / wanted.sum() / np.bincount(LABELS))[LABELS]
    for sampler in team("weighted", size, seed=5)[:: max(1, size - 1)]:  # the first process and the last
        for epoch in (0, EPOCHS - 1):
            sampler.set_epoch(epoch)
            padded = np.concatenate([epochs[epoch], epochs[epoch]])[sampler.rank : sampler.total_size : size]
            assert list(sampler) == padded.tolist()
    for rank in range(size):
        drawn = epochs[:, rank::size]
        seen = np.bincount(drawn.ravel(), minlength=n)
        spread = np.sqrt(drawn.size * probability * (1 - probability))
        assert (abs(seen - drawn.size * probability) < 4.5 * spread).all()  # of 2,160 counts none by chance


@pytest.mark.parametrize("size", range(1, 9))
def test_each_class_has_exactly_its_places_in_every_epoch(size):
    for epoch in range(20):
        samplers = team("class_balanced", size)
        for sampler in samplers:
            sampler.set_epoch(epoch)
        common = in_turns([list(sampler) for sampler in samplers])[: len(LABELS)]
        assert LABELS[common].bincount().tolist() == [15, 15, 15, 15]


@pytest.mark.parametrize("size", range(1, 9))
def test_processes_have_nothing_in_common(size):
    for epoch in range(20):
        parts = []
        for sampler in team("uniform", size):
            sampler.set_epoch(epoch)
            parts.append(list(sampler))
        together = in_turns(parts)
        assert sorted(together[: len(LABELS)]) == list(range(len(LABELS)))
        assert len(together) - len(LABELS) < size  # repeated, so that all have as many


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(("before", "after"), [(4, 3), (3, 4), (1, 8), (8, 1), (2, 2)])
def test_another_number_of_processes_goes_on_with_what_is_left(name, before, after):
    first, second = team(name, before, seed=3), team(name, after, seed=3)
    visited = 5
    for sampler in first:
        sampler.set_epoch(2)
    whole = in_turns([list(sampler) for sampler in first])[: len(LABELS)]
    seen = in_turns([list(sampler)[:visited] for sampler in first])
    state = first[0].state_dict(visited)
    assert state["position"] == visited * before and state["epoch"] == 2
    assert all(sampler.state_dict(visited) == state for sampler in first)
    for sampler in second:
        sampler.load_state_dict(state)
        sampler.set_epoch(2)  # as the loop does before it goes on
    assert {len(sampler) for sampler in second} == {-(-(len(LABELS) - visited * before) // after)}
    rest = in_turns([list(sampler) for sampler in second])
    assert (seen + rest)[: len(LABELS)] == whole
    # stopped once more, before the end
    again = second[0].state_dict(1)
    assert again["position"] == visited * before + after
    for sampler in second:
        sampler.set_epoch(3)
    assert {len(sampler) for sampler in second} == {-(-len(LABELS) // after)}


def test_what_was_handed_out_counts_unless_told():
    sampler = UniformSampler(LABELS, rank=1, num_replicas=4)
    indices = iter(sampler)
    next(indices), next(indices)
    assert sampler.state_dict()["position"] == 8
    assert sampler.state_dict(visited=1)["position"] == 4  # the loader is one ahead
    list(indices)
    assert sampler.state_dict()["position"] == len(LABELS)
    sampler.set_epoch(1)
    assert sampler.state_dict() == {"epoch": 1, "position": 0, "progress": 0.0}


def test_an_epoch_that_was_finished_has_nothing_left():
    sampler = UniformSampler(LABELS)
    sampler.load_state_dict({"epoch": 4, "position": len(LABELS), "progress": 0.0})
    assert len(sampler) == 0 and list(sampler) == []
    sampler.set_epoch(5)
    assert sorted(sampler) == list(range(len(LABELS)))


@pytest.mark.parametrize("state", [{"epoch": 0, "position": 61}, {"epoch": -1, "position": 0}])
def test_a_state_of_other_data_is_refused(state):
    with pytest.raises(ValueError, match="position must be at most 60|epoch must be a whole number"):
        UniformSampler(LABELS).load_state_dict({**state, "progress": 0.0})
