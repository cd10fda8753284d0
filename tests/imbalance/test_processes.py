"""Samplers in other people's loops on two processes: plain PyTorch, Lightning and Accelerate, as they are installed.

`programs/loops.py` holds the loops. None of them tells the sampler which process it is in.
"""

import json
import os
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest
import torch

from equipoise.imbalance import DistributedWeightedSampler

from ..loading import loaded

LOOPS = Path(__file__).parent / "programs" / "loops.py"
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch has no torch.distributed")

loops = loaded(LOOPS)


def visited(loop, folder):
    """What the two processes of a loop visited."""
    launcher = () if loop == "lightning" else TORCHRUN  # Lightning starts the second process by itself
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, *launcher, LOOPS, loop, folder], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in (0, 1)]


@pytest.fixture(scope="module")
def ddp(tmp_path_factory):
    return visited("ddp", tmp_path_factory.mktemp("ddp"))


@pytest.fixture(scope="module")
def lightning(tmp_path_factory):
    pytest.importorskip("lightning")
    return visited("lightning", tmp_path_factory.mktemp("lightning"))


@pytest.fixture(scope="module")
def accelerate(tmp_path_factory):
    pytest.importorskip("accelerate")
    return visited("accelerate", tmp_path_factory.mktemp("accelerate"))


def order(name, epoch, **place):
    sampler = loops.SAMPLERS[name](loops.LABELS, **place)
    sampler.set_epoch(epoch)
    return list(sampler)


def in_turns(parts):
    """The global order, if each process took its index in turn."""
    return list(chain.from_iterable(zip(*parts, strict=True)))


@pytest.mark.parametrize("loop", ["ddp", "lightning"])
@pytest.mark.parametrize("name", loops.SAMPLERS)
def test_each_process_has_its_half_of_every_epoch(loop, name, request):
    ranks = request.getfixturevalue(loop)
    for epoch in range(loops.EPOCHS):
        parts = [rank[name][epoch] for rank in ranks]
        assert [len(part) for part in parts] == [284, 284]
        assert in_turns(parts) == order(name, epoch)


@pytest.mark.parametrize("loop", ["ddp", "lightning", "accelerate"])
def test_every_sample_is_visited_once_an_epoch_and_epochs_differ(loop, request):
    ranks = request.getfixturevalue(loop)
    epochs = [list(chain.from_iterable(rank["uniform"][epoch] for rank in ranks)) for epoch in range(loops.EPOCHS)]
    for epoch in epochs:
        # Accelerate makes all batches full, with samples from the start of the epoch: 18 batches of 32
        assert len(epoch) == (576 if loop == "accelerate" else 568)
        assert set(epoch) == set(range(loops.N))
    assert len({tuple(epoch) for epoch in epochs}) == loops.EPOCHS


def test_lightning_resumes_with_the_order_of_the_epoch(lightning):
    assert all(rank["resumed"] == rank["uniform"] for rank in lightning)


def test_lightning_leaves_a_sampler_alone_that_was_told_its_process(lightning):
    assert all(rank["told"] == rank["uniform"] for rank in lightning)


@pytest.mark.parametrize("name", loops.SAMPLERS)
def test_accelerate_splits_the_common_order_batch_by_batch(accelerate, name):
    for epoch in range(loops.EPOCHS):
        batches = in_turns([torch.tensor(rank[name][epoch]).split(loops.BATCH) for rank in accelerate])
        assert torch.cat(batches).tolist()[: loops.N] == order(name, epoch)


def test_accelerate_resumes_in_the_middle_of_an_epoch(accelerate):
    for rank in accelerate:
        first, second = rank["resumed"]
        assert first == rank["uniform"][1][4 * loops.BATCH :] and second == rank["uniform"][2]


@pytest.mark.parametrize("way", ["split_batches", "dispatch_batches", "use_seedable_sampler"])
def test_accelerates_other_ways(accelerate, way):
    for epoch in range(loops.EPOCHS):
        together = list(chain.from_iterable(rank[way][epoch] for rank in accelerate))
        assert set(together) == set(range(loops.N)) and len(together) <= 576
    assert accelerate[0][way][0] != accelerate[0][way][1]


def test_a_process_that_is_told_wins_over_accelerate_which_is_worth_a_word(accelerate):
    for number, rank in enumerate(accelerate):
        assert rank["told"][0] == order("uniform", 0, rank=number, num_replicas=2)
        assert "Leave rank and num_replicas out" in rank["warned"][0]


def example_order(epoch):
    """What all processes together visit in an epoch of the examples."""
    sampler = DistributedWeightedSampler.to_ratio(loops.DATA[1], ratio=4.0)
    sampler.set_epoch(epoch)
    return list(sampler)


def test_the_plain_example_goes_on_in_the_middle_of_an_epoch(ddp):
    before, *after = [in_turns(parts) for parts in zip(*(rank["example"] for rank in ddp), strict=True)]
    assert len(before) == 160  # 5 steps of 16 samples on 2 processes
    assert [before + after[0], *after[1:]] == [example_order(epoch) for epoch in range(3)]


def test_the_accelerate_example_goes_on_in_the_middle_of_an_epoch(accelerate):
    parts = [[torch.tensor(epoch).split(16) for epoch in rank["example"]] for rank in accelerate]
    before, *after = [torch.cat(in_turns(batches)).tolist() for batches in zip(*parts, strict=True)]
    assert len(before) == 160
    # Accelerate fills the last batches with samples from the start of the epoch
    assert (before + after[0])[:200] == example_order(0)
    assert [epoch[:200] for epoch in after[1:]] == [example_order(epoch) for epoch in (1, 2)]


def test_the_lightning_example_is_uniform_and_then_balanced(lightning):
    first, second = ([rank["example"][half] for rank in lightning] for half in (slice(100), slice(100, None)))
    assert sorted(in_turns(first)) == list(range(200))
    assert sorted(loops.DATA[1][in_turns(second)].bincount().tolist()) == [66, 67, 67]
