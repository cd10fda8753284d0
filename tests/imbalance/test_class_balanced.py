from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.imbalance import ClassBalancedSampler, ProgressiveSampler, SquareRootSampler
from equipoise.imbalance.samplers._visit import quotas

labels_strategy = st.lists(st.sampled_from([0, 1, 2, 5, 9]), min_size=1, max_size=80)
quick = settings(max_examples=80, deadline=None)


def visits(labels, order):
    """The samples of each class in the order they come."""
    by_class = {}
    for index in order:
        by_class.setdefault(labels[index], []).append(index)
    return by_class


@quick
@given(labels=labels_strategy, seed=st.integers(0, 10**6))
def test_each_class_has_an_equal_share_to_within_one(labels, seed):
    order = list(ClassBalancedSampler(labels, seed=seed))
    share, present = Counter(labels[i] for i in order), set(labels)
    low = len(labels) // len(present)
    assert share.keys() == present or low == 0
    assert all(low <= n <= low + 1 for n in share.values())
    assert sum(share.values()) == len(labels)


@pytest.mark.parametrize("sampler", [ClassBalancedSampler, SquareRootSampler, ProgressiveSampler])
@quick
@given(labels=labels_strategy, seed=st.integers(0, 10**6), progress=st.floats(0, 1))
def test_no_sample_comes_twice_before_all_of_its_class_have_come(sampler, labels, seed, progress):
    made = sampler(labels, seed=seed)
    made.set_epoch(0, progress)
    sizes = Counter(labels)
    for label, seen in visits(labels, list(made)).items():
        for start in range(0, len(seen), sizes[label]):
            one_round = seen[start : start + sizes[label]]
            assert len(set(one_round)) == len(one_round)


def test_number_by_hand():
    # 11 places for 3 classes: 3 or 4 each, and the class of one sample shows it 3 or 4 times
    labels = [0] * 8 + [1] * 2 + [2]
    shares = [Counter(list(ClassBalancedSampler(labels, seed=s)))[10] for s in range(300)]
    assert set(shares) == {3, 4}
    assert sum(shares) / 300 == pytest.approx(11 / 3, abs=0.1)  # the remainder goes to everyone in turn


def test_all_samples_are_equally_likely_over_epochs():
    labels, seen = [0] * 30 + [1] * 3, Counter()
    sampler = ClassBalancedSampler(labels)
    for epoch in range(400):
        sampler.set_epoch(epoch)
        seen.update(sampler)
    # 16.5 of 33 places for each class: 400 · 16.5 / 30 = 220 each, and 400 · 16.5 / 3 = 2200 each
    assert all(seen[i] == pytest.approx(220, abs=50) for i in range(30))
    assert all(seen[i] == pytest.approx(2200, abs=50) for i in range(30, 33))


def test_classes_come_in_random_order():
    labels = torch.arange(2).repeat_interleave(50)
    visited = labels[list(ClassBalancedSampler(labels))]
    assert 30 < int((visited.diff() != 0).sum()) < 70  # 49.5 on average


@pytest.mark.parametrize("offset", [0.0, 1 - 2**-24])
def test_quotas_sum_to_the_epoch_at_either_end_of_the_random_offset(monkeypatch, offset):
    monkeypatch.setattr(torch, "rand", lambda *size, **options: torch.tensor(offset))
    for n in (1, 7, 10, 1000, 50_000, 10**7):
        for shares in (torch.full((10,), 0.1), torch.rand_like(torch.ones(100)), torch.tensor([n / 3, n / 3, n / 3])):
            assert int(quotas(shares.double(), n, torch.Generator()).sum()) == n
    assert quotas(torch.tensor([0.1, 0.2, 0.7], dtype=torch.float64), 10, torch.Generator()).tolist() == [1, 2, 7]


def test_start_is_checked():
    with pytest.raises(ValueError, match="start"):
        ClassBalancedSampler([0, 1], start=2.0)
