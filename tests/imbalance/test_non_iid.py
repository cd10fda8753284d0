from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.core import Spec
from equipoise.imbalance import NonIIDSampler


def batches(order, size):
    return [order[i : i + size] for i in range(0, len(order), size)]


@settings(max_examples=60, deadline=None)
@given(
    labels=st.lists(st.sampled_from([0, 1, 4, 7, 8]), min_size=1, max_size=100),
    classes=st.integers(1, 4),
    each=st.integers(1, 5),
    seed=st.integers(0, 10**6),
)
def test_a_batch_holds_blocks_of_a_few_classes(labels, classes, each, seed):
    order = list(NonIIDSampler(labels, classes, classes * each, seed=seed))
    assert len(order) == len(labels)
    for batch in batches(order, classes * each):
        share = Counter(labels[i] for i in batch)
        assert len(share) <= classes
        if len(batch) == classes * each:
            assert all(n % each == 0 for n in share.values())
    sizes, seen = Counter(labels), {}
    for index in order:
        seen.setdefault(labels[index], []).append(index)
    for label, visited in seen.items():
        for one_round in batches(visited, sizes[label]):
            assert len(set(one_round)) == len(one_round)


def test_the_batches_of_the_paper():
    labels = [i % 100 for i in range(40_000)]
    drawn = [Counter(labels[i] for i in b) for b in batches(list(NonIIDSampler(labels)), 128)]
    assert all(sum(share.values()) == 128 for share in drawn[:-1])
    kinds = Counter(tuple(sorted(share.values())) for share in drawn[:-1])
    assert set(kinds) <= {(32,) * 4, (32, 32, 64), (64, 64), (32, 96), (128,)}
    # with replacement: four of 100 differ with probability 0.99 · 0.98 · 0.97 = 0.941, so 18 of 312 batches have a pair
    assert 5 < sum(kinds.values()) - kinds[(32,) * 4] < 40
    assert len(set().union(*drawn)) > 95


def test_a_batch_is_shuffled():
    labels = [i % 100 for i in range(4000)]
    for batch in batches(list(NonIIDSampler(labels)), 128)[:-1]:
        assert len({labels[i] for i in batch[:16]}) > 1  # a ghost batch of 16 is not of one class
    assert NonIIDSampler(labels, 1, 8).batch_size == 8


def test_text_and_errors():
    sampler = Spec.parse("non_iid(classes=2)").build("sampler", labels=[0, 1, 2], batch_size=8)  # a fact of the plan
    assert (sampler.classes, sampler.batch_size, len(sampler)) == (2, 8, 3)
    with pytest.raises(ValueError, match="multiple of classes"):
        NonIIDSampler([0, 1], classes=3, batch_size=128)
    with pytest.raises(ValueError, match="classes must be a whole number"):
        NonIIDSampler([0, 1], classes=0)
