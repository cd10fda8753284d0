"""Several processes train what one would; `programs/processes.py` holds what they do, on 1, 2 and 4 of them."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch

from equipoise.core import EquipoiseError, cards
from equipoise.data import load_task
from equipoise.store import Store
from equipoise.study import started_by_torchrun, trained_network
from equipoise.study.run.together import _own_device, what_each_sees
from equipoise.train import Processes, Recipe, Run
from equipoise.train.streams import PURPOSES

PROGRAM = Path(__file__).parent / "programs" / "processes.py"
SIZES = (1, 2, 4)
pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch has no torch.distributed")

spec = importlib.util.spec_from_file_location("processes", PROGRAM)
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("processes")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, PROGRAM, folder]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def found(folder):
    """{number of processes: [what each found]}"""
    return {size: [json.loads((folder / f"{size}-{rank}.json").read_text()) for rank in range(size)] for size in SIZES}


@pytest.fixture(scope="module")
def alone(folder):
    """What one process comes to that has no company."""
    return json.loads((folder / "alone.json").read_text())


@pytest.mark.parametrize("size", SIZES)
def test_every_loss_and_weighting_is_that_of_the_whole_batch(found, size):
    for process in found[size]:
        worst = max(process["differences"], key=process["differences"].get)
        assert process["differences"][worst] < 1e-6, worst
    names = " ".join(found[size][0]["differences"])
    assert all(card.name in names for kind in ("loss", "weighting") for card in cards(kind))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", program.RUNS)
def test_epochs_are_those_of_one_process(found, alone, size, name):
    losses, weights = alone["runs"][name]
    for process in found[size]:
        # float32, and its sums in another order
        np.testing.assert_allclose(process["runs"][name][0], losses, atol=2e-5)
        np.testing.assert_allclose(process["runs"][name][1], weights, atol=1e-4)
        assert process["runs"][name] == found[size][0]["runs"][name]  # the processes have the same, to the bit


@pytest.mark.parametrize("size", SIZES)
def test_norms_over_batches_see_the_images_of_their_process(found, size):
    for process in found[size]:
        assert process["norms"]["weights"] < 1e-4
        assert process["norms"]["moving averages"] == 0  # after an epoch all have the same


@pytest.mark.parametrize("size", SIZES)
def test_synchronized_batch_norms_see_the_whole_batch(found, size):
    for process in found[size]:
        assert process["synchronized"] < 1e-6  # outputs, gradients and moving averages of PyTorch's on one process
        assert process["synchronized_runs"] < 1e-5  # of an epoch in float32


@pytest.mark.parametrize("size", SIZES)
def test_outputs_are_those_of_one_process(found, size):
    assert all(process["predictions"] < 1e-5 for process in found[size])


@pytest.mark.parametrize("size", SIZES)
def test_an_epoch_is_the_same_whatever_the_number_of_processes(found, size):
    together = [process["visited"] for process in found[size]]
    steps = [sorted(chain.from_iterable(batches)) for batches in zip(*together, strict=True)]
    assert steps == [sorted(batch) for batch in found[1][0]["visited"]]  # batch by batch the same samples
    every = list(chain.from_iterable(steps))
    assert len(set(every)) == len(every)


def test_processes_draw_unlike_numbers_that_depend_on_the_epoch_alone(found):
    for purpose in set(PURPOSES) - {"order"}:
        for process in found[4]:
            first, again = process["random_numbers"][purpose]
            assert first == again
        assert len({process["random_numbers"][purpose][0] for process in found[4]}) == 4
    assert len({process["random_numbers"]["order"][0] for process in found[4]}) == 1


def test_a_checkpoint_of_four_processes_is_gone_on_with_by_two(found, alone):
    assert {process["resumed"]["began"] for process in found[4]} == {0}
    assert {process["resumed"]["began"] for process in found[2]} == {2}
    for process in found[2]:
        np.testing.assert_allclose(process["resumed"]["weights"], alone["resumed"], atol=1e-4)


def test_a_second_stage_and_a_correction_are_done_once(found):
    once, twice = found[2][0]["corrected"]
    assert len(once) == 3 and once == twice  # the training, the stage and the correction
    assert all(error is None for _, error in once)


def test_a_training_that_diverges_is_recorded_and_what_builds_on_it_too(found):
    once, twice = found[2][0]["diverged"]
    assert len(once) == 3 and once == twice
    said = sorted(error for _, error in once)
    assert said[0].startswith("the loss was not a finite number at step")
    assert said[1:] == ["the training it builds on failed"] * 2


def test_the_record_says_what_each_process_saw(found):
    (note,) = found[2][0]["uninterrupted"]["notes"]
    assert note.startswith("Trained by 2 processes, which share each batch of 64 images. mixup(")
    assert "mixes images of one process" in note and "Norms over batches have the statistics of one process" in note


@pytest.mark.parametrize(
    ("norm", "images"),
    [("batch", "one process's"), ("batch(synchronized=True)", "all processes'"), ("group(groups=2)", None)],
)
def test_the_record_says_what_norms_see(norm, images):
    recipe = Recipe.make({**program.SMALL, "norm": norm}, program.TASK)
    note = what_each_sees(Run(recipe, load_task(**recipe.task.__dict__), torch.device("cpu"), team=numbered(0, 2)))
    assert (f"have the statistics of {images} images" in note) if images else ("statistics" not in note)


# -- under torchrun ----------------------------------------------------------------------------------------------------

TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--max-restarts=3", "--monitor-interval=0.1")


def torchrun(folder, processes, recipe, *options, **environment):
    """Start `equipoise train` on so many processes; its results go to folder/out."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in recipe.items()]
    task = [f"{name} = {json.dumps(value)}" for name, value in program.DIGITS.items()]
    (folder / "recipe.toml").write_text("\n".join([*lines, "[task]", *task]))
    command = (*TORCHRUN, f"--nproc-per-node={processes}", "-m", "equipoise", "train", "recipe.toml", "--out", "out")
    return subprocess.Popen(
        [sys.executable, *command, *options],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def process_of(launcher, rank):
    """The process that torchrun started as number `rank`."""
    for pid in Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split():
        if f"RANK={rank}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            return int(pid)
    raise AssertionError(f"there is no process of rank {rank}")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes by /proc")
def test_a_process_is_killed_and_the_result_is_as_uninterrupted(found, tmp_path):
    launcher = torchrun(tmp_path, 2, program.ELASTIC, "--device", "cpu")
    try:
        until = time.monotonic() + 300
        while not list(tmp_path.glob("out/unfinished/*/checkpoint.pt")):
            assert launcher.poll() is None and time.monotonic() < until, launcher.communicate()[0]
            time.sleep(0.01)
        os.kill(process_of(launcher, rank=1), signal.SIGKILL)
        said, _ = launcher.communicate(timeout=300)
    finally:
        launcher.kill()
    assert launcher.returncode == 0, said
    assert "SIGKILL" in said or "exitcode: -9" in said  # it was not too late
    store = Store(tmp_path / "out")
    (record,) = store.records()
    assert record.curves == found[2][0]["uninterrupted"]["curves"]
    images = torch.zeros(2, 1, 8, 8, dtype=torch.uint8)
    assert trained_network(store, record.key, torch.device("cpu"))(images).shape == (2, 10)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_one_process_on_a_gpu(tmp_path):
    launcher = torchrun(tmp_path, 1, program.ELASTIC, "--device", "cuda", NCCL_DEBUG="VERSION")
    said, _ = launcher.communicate(timeout=300)
    assert launcher.returncode == 0, said
    assert "NCCL version" in said  # its first message says so
    (record,) = Store(tmp_path / "out").records()
    assert record.finished and record.notes == ("Trained by 1 process.",)
    assert record.metrics["valid_accuracy"] > 0.5


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_synchronized_batch_norms_on_a_gpu(tmp_path):
    command = [sys.executable, PROGRAM, tmp_path, "cuda"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert all(json.loads((tmp_path / f"2-{rank}.json").read_text())["synchronized"] < 1e-6 for rank in range(2))


# -- without processes -------------------------------------------------------------------------------------------------


def test_torchrun_is_known_by_its_variables(monkeypatch):
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    assert not started_by_torchrun()
    for name in names:
        monkeypatch.setenv(name, "0")
    assert started_by_torchrun()


def test_each_process_has_a_device_of_its_own(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert _own_device(torch.device("cpu"), 5) == torch.device("cpu")
    assert _own_device(torch.device("cuda"), 1) == torch.device("cuda:1")
    with pytest.raises(EquipoiseError, match="at least 3 processes here, where 2 GPUs are: lower --nproc-per-node"):
        _own_device(torch.device("cuda"), 2)
    with pytest.raises(EquipoiseError, match="cuda:1 is one GPU"):
        _own_device(torch.device("cuda:1"), 0)


def numbered(rank, size):
    """One of several processes, without a process group."""
    process = Processes.__new__(Processes)
    process.rank, process.size = rank, size
    return process


@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize("count", [8, 13, 128])
def test_shares_have_everything_once_and_are_nearly_equal(size, count):
    shares = [numbered(rank, size).share(count) for rank in range(size)]
    assert [i for share in shares for i in share] == list(range(count))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize(("before", "after"), [(4, 3), (1, 8), (7, 2), (5, 5)])
def test_another_number_in_the_middle_of_an_epoch_visits_what_is_left(before, after):
    order, part, steps = torch.randperm(206), 20, 4

    def batches(size):
        """The epoch of each process, a row for each batch."""
        shares = [numbered(rank, size).of_epoch(order, part).view(10, -1) for rank in range(size)]
        return torch.cat(shares, dim=1)

    visited = torch.cat([batches(before)[:steps].flatten(), batches(after)[steps:].flatten()])
    assert sorted(visited.tolist()) == sorted(order[:200].tolist())  # each once


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"procedure": "bbn"}, "training by 4 processes needs the plain step"),
        (
            {"penalty": "logit_penalty", "weighting": "effective_number(normalize='batch')"},
            "training by 4 processes cannot add a penalty",
        ),
        ({"batch_size": 6, "accumulate": 2}, "3 images at a time cannot be shared by 4 processes: raise batch_size"),
    ],
)
def test_what_processes_cannot_share_is_refused(options, said):
    recipe = Recipe.make({"model": "cnn_small", "epochs": 2, **options}, program.TASK)
    task = load_task(**recipe.task.__dict__)
    Run(recipe, task, torch.device("cpu"))
    with pytest.raises(EquipoiseError, match=said):
        Run(recipe, task, torch.device("cpu"), team=numbered(0, 4))
