"""What all weightings and all samplers share."""

import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, DistributedSampler

from equipoise.core import Spec, cards
from equipoise.imbalance import (
    BiasWeighting,
    ClassBalancedSampler,
    DistributedWeightedSampler,
    EffectiveNumber,
    InverseFrequency,
    NonIIDSampler,
    ProgressiveSampler,
    SquareRootSampler,
    TargetRatioSampler,
    UniformSampler,
)

SAMPLERS = [
    UniformSampler,
    ClassBalancedSampler,
    SquareRootSampler,
    lambda labels, **k: TargetRatioSampler(labels, ratio=2.0, **k),
    lambda labels, **k: ProgressiveSampler(labels, epochs=10, **k),
    lambda labels, **k: NonIIDSampler(labels, classes=2, batch_size=6, **k),
    lambda labels, **k: DistributedWeightedSampler([1.0 + c for c in labels], **k),
]
NAMES = ["uniform", "class_balanced", "square_root", "target_ratio", "progressive", "non_iid", "distributed_weighted"]
labels_strategy = st.lists(st.integers(0, 6), min_size=1, max_size=60)
quick = settings(max_examples=40, deadline=None)


@pytest.mark.parametrize("weighting", [EffectiveNumber([90, 10], start=0.8), InverseFrequency([90, 10], start=0.8)])
def test_a_deferred_weighting_counts_all_alike_until_its_start(weighting):
    target = torch.tensor([0, 1, 1])
    assert weighting(target, None, 0.79).tolist() == [1.0, 1.0, 1.0]
    assert torch.equal(weighting(target, None, torch.tensor(0.79)), torch.ones(3))
    expected = weighting.weights(target, None)
    assert torch.equal(weighting(target, None, 0.8), expected)
    assert torch.equal(weighting(target, None, torch.tensor(0.9)), expected)
    assert float(expected[0]) < 1 < float(expected[1])


@pytest.mark.parametrize("make", [lambda s: EffectiveNumber([2, 1], start=s), lambda s: BiasWeighting(start=s)])
@pytest.mark.parametrize("start", [-0.1, 1.1, float("nan")])
def test_start_is_a_share(make, start):
    with pytest.raises(ValueError, match="start"):
        make(start)


@pytest.mark.parametrize("sampler", [ClassBalancedSampler, SquareRootSampler])
def test_a_deferred_sampler_is_uniform_until_its_start(sampler):
    labels = [0] * 20 + [1] * 4 + [2]
    deferred = sampler(labels, start=0.5)
    deferred.set_epoch(3, progress=0.49)
    assert sorted(deferred) == list(range(25))
    deferred.set_epoch(3, progress=0.5)
    assert sorted(deferred) != list(range(25))


@pytest.mark.parametrize("make", SAMPLERS, ids=NAMES)
@quick
@given(labels=labels_strategy, seed=st.integers(0, 1000))
def test_the_order_does_not_depend_on_the_number_of_processes(make, labels, seed):
    order = list(make(labels, seed=seed))
    assert len(order) == len(labels)
    for processes in (2, 3, 5):
        ranks = [make(labels, seed=seed, rank=rank, num_replicas=processes) for rank in range(processes)]
        parts = [list(rank) for rank in ranks]
        assert {len(part) for part in parts} == {len(ranks[0])} == {-(-len(order) // processes)}
        together = [index for turn in zip(*parts, strict=True) for index in turn]
        assert together[: len(order)] == order  # nothing lost, nothing moved
        repeated = together[len(order) :]
        assert repeated == [order[i % len(order)] for i in range(len(repeated))]


@pytest.mark.parametrize("make", SAMPLERS, ids=NAMES)
def test_seed_and_epoch_make_the_order(make):
    labels = [i % 4 for i in range(40)]
    order = list(make(labels, seed=1))
    assert list(make(labels, seed=1)) == order
    assert list(make(labels, seed=2)) != order
    sampler = make(labels, seed=1)
    sampler.set_epoch(1)
    assert list(sampler) != order
    sampler.set_epoch(0)
    assert list(sampler) == order


@pytest.mark.parametrize("make", SAMPLERS, ids=NAMES)
def test_epoch_draws_from_the_generator_alone(make):
    sampler = make([i % 4 for i in range(40)])
    before = torch.get_rng_state()
    first = sampler.order(torch.Generator().manual_seed(7), 0.3)
    again = sampler.order(torch.Generator().manual_seed(7), 0.3)
    assert torch.equal(first, again) and first.dtype == torch.int64
    assert torch.equal(before, torch.get_rng_state())
    moving_on = torch.Generator().manual_seed(7)
    assert not torch.equal(sampler.order(moving_on), sampler.order(moving_on))


@pytest.mark.parametrize("make", SAMPLERS, ids=NAMES)
def test_in_a_data_loader(make):
    labels = [i % 4 for i in range(40)]
    batches = list(DataLoader(list(range(40)), batch_size=8, sampler=make(labels)))
    assert torch.cat(batches).tolist() == list(make(labels))


@pytest.mark.parametrize("make", SAMPLERS[:-1], ids=NAMES[:-1])
def test_labels_of_any_form(make):
    labels = torch.arange(40) % 4
    assert list(make(labels)) == list(make(labels.tolist())) == list(make(labels.numpy()))
    with pytest.raises(ValueError, match="labels"):
        make([])
    with pytest.raises(ValueError, match="rank must be below"):
        make(labels, rank=2, num_replicas=2)


def test_all_are_registered_and_buildable_from_text():
    names = {kind: {c.name for c in cards(kind)} for kind in ("weighting", "sampler", "posthoc")}
    assert names["weighting"] == {"effective_number", "inverse_frequency", "bias"}
    assert names["sampler"] == {
        "uniform",
        "class_balanced",
        "square_root",
        "progressive",
        "target_ratio",
        "non_iid",
    }
    assert {"logit_adjust", "tau_norm", "temperature"} <= names["posthoc"]
    facts = {"class_counts": torch.tensor([3, 2]), "labels": [0, 0, 0, 1, 1], "head_weight": torch.eye(2)}
    for kind, members in names.items():
        for name in members:
            assert Spec.parse(name).build(kind, **facts)


@pytest.mark.parametrize("name", ["effective_number", "inverse_frequency", "bias"])
def test_neutral_values_weigh_all_alike(name):
    from equipoise.core import Output, card

    (entry,) = [c for c in cards("weighting") if c.name == name]
    assert entry is card(name, "weighting")
    facts = {"class_counts": torch.tensor([300, 2])}
    weighting = Spec(name, tuple(entry.neutral.items())).build("weighting", **facts)
    out = Output(torch.zeros(2, 2), feature_map=torch.randn(2, 3, 4, 4))
    assert weighting(torch.tensor([0, 1]), out).tolist() == [1.0, 1.0]


def test_importing_needs_torch_and_numpy_only():
    code = (
        "import sys, torch; before = set(sys.modules); import equipoise.imbalance, equipoise.mixing; "
        "new = {m.partition('.')[0] for m in set(sys.modules) - before}; "
        "sys.exit(str(new & {'scipy', 'sklearn', 'typer', 'rich', 'plotly', 'pandas'}) if new & {'scipy', 'sklearn', "
        "'typer', 'rich', 'plotly', 'pandas'} else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("make", SAMPLERS, ids=NAMES)
def test_reads_as_pytorchs_distributed_sampler(make):
    sampler = make(list(range(7)), rank=1, num_replicas=3, seed=4)
    assert isinstance(sampler, DistributedSampler)
    assert (sampler.rank, sampler.num_replicas, sampler.num_samples, sampler.total_size) == (1, 3, 3, 9)
    assert (sampler.seed, sampler.shuffle, sampler.drop_last, sampler.epoch) == (4, True, False, 0)
    sampler.set_epoch(5)
    assert sampler.epoch == 5


@pytest.mark.parametrize("make", SAMPLERS, ids=NAMES)
def test_the_default_device_and_type_do_not_matter(make):
    labels = [i % 4 for i in range(40)]
    expected, before = list(make(labels)), torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.bfloat16)
        with torch.device("meta"):
            assert list(make(labels)) == expected
    finally:
        torch.set_default_dtype(before)


def test_alone_it_is_the_only_process():
    sampler = UniformSampler([0, 1, 2])
    assert (sampler.rank, sampler.num_replicas, len(sampler)) == (0, 1, 3)


def test_the_process_group_says_which_process_it_is(monkeypatch):
    sampler, told = UniformSampler(range(10)), UniformSampler(range(10), rank=0, num_replicas=5)
    for name, value in {"is_initialized": True, "get_rank": 1, "get_world_size": 4}.items():
        monkeypatch.setattr(torch.distributed, name, lambda value=value: value)
    assert (sampler.rank, sampler.num_replicas, len(list(sampler))) == (1, 4, 3)  # made before the group was
    assert (told.rank, told.num_replicas) == (0, 5)
    with pytest.raises(ValueError, match=r"rank must be below num_replicas \(4\), not 4"):
        list(UniformSampler(range(10), rank=4))


@pytest.mark.parametrize("make", [ProgressiveSampler, lambda labels, **k: ClassBalancedSampler(labels, 0.5, **k)])
def test_how_far_training_is_follows_from_the_number_of_epochs(make):
    labels = torch.tensor([0] * 9 + [1])
    known, told = make(labels, epochs=4), make(labels)
    for epoch in range(5):
        known.set_epoch(epoch)
        told.set_epoch(epoch, progress=epoch / 4)
        assert list(known) == list(told)
    assert labels[list(known)].bincount().tolist() == [5, 5]
    known.set_epoch(9)  # more epochs than were meant: nothing is left to change
    assert labels[list(known)].bincount().tolist() == [5, 5]
    with pytest.raises(ValueError, match=r"make it with epochs=…, or tell it with set_epoch\(1, progress=…\)"):
        make(labels).set_epoch(1)
