"""What `--engine ray` survives and costs, on a cluster of one machine: a head and nodes as processes of their own.

    python benchmarks/cluster.py kills --times 30     # kill -9 of workers, nodes and drivers, at random
    python benchmarks/cluster.py study --seeds 20     # a real study, on the cluster and by the local engine, in turns
    python benchmarks/cluster.py sleep --runs 1000 --seconds 20 --tasks 100   # what Ray and the driver cost
    python benchmarks/cluster.py errors --times 3     # seconds until a mistake is told, from the command's start

What was measured is in docs/results/cluster.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import ray
import torch
from PIL import Image
from ray.cluster_utils import Cluster

STUDY = """
question = "Does a study on a cluster end as one on this machine?"
baseline = "plain"
seeds = {seeds}
[task]
name = "digits"
imbalance = "long_tailed"
ratio = 20
[base]
model = "cnn_small"
epochs = {epochs}
[methods.plain]
[methods.class_balanced]
weighting = "effective_number(beta=0.999)"
[methods.mfw]
mix = "mfw(alpha=1.0)"
[methods.adjusted]
posthoc = "logit_adjust(tau=1.0)"
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["kills", "study", "sleep", "errors"])
    parser.add_argument("--times", type=int, default=30, help="kills, or tries of each error")
    parser.add_argument("--chance", type=int, default=0, help="seed of the kills' moments and victims")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--turns", type=int, default=3, help="of the two engines in a study")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--tasks", type=int, default=100)
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="cluster-"))
    try:
        {"kills": kills, "study": study, "sleep": sleep, "errors": errors}[asked.what](folder, asked)
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def cluster_of(nodes: int, cpus: int) -> Cluster:
    """A head that trains nothing, and so many nodes with so many cores each.

    Ray lets its workers yield to all other processes (niceness 15), which those of the local engine do not.
    """
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  # as Ray spells it
    made = Cluster()
    for number in range(nodes + 1):
        add_node(made, cpus if number else 0)
    return made


def add_node(nodes: Cluster, cpus: int, tries: int = 10) -> None:
    """Ray gives a node 30 seconds to start, which on an overloaded machine is not always enough."""
    for left in reversed(range(tries)):
        try:
            nodes.add_node(num_cpus=cpus, include_dashboard=False)
            return
        except Exception:
            if not left:
                raise


def start(path: Path, out: Path, *options: str, code=("-m", "equipoise"), env=None) -> subprocess.Popen[str]:
    command = [sys.executable, *code, "run", str(path), "--out", str(out), "--device", "cpu", *options]
    environment = {**os.environ, **(env or {})}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


def seconds_of(path: Path, out: Path, *options: str) -> float:
    began = time.monotonic()
    process = start(path, out, *options)
    text, _ = process.communicate()
    if process.returncode:
        raise SystemExit(text)
    return time.monotonic() - began


def records(out: Path) -> dict[str, dict]:
    """What the records say, but for when and how long."""
    found = {}
    for path in out.glob("runs/*/record.json"):
        plain = json.loads(path.read_text())
        found[plain["key"]] = {name: plain[name] for name in ("recipe", "state", "metrics", "curves", "files", "data")}
    return found


def written(out: Path) -> dict[str, int]:
    return {path.parent.name: path.stat().st_mtime_ns for path in out.glob("runs/*/record.json")}


# -- kills -------------------------------------------------------------------------------------------------------------


def kills(folder: Path, asked: argparse.Namespace) -> None:
    """Studies one after the other, until so many processes were killed; each must end as the local one did."""
    path = folder / "asked.toml"
    path.write_text(STUDY.format(seeds=asked.seeds, epochs=asked.epochs))
    usual = seconds_of(path, folder / "local", "--workers", "2")
    expected, chance, killed = records(folder / "local"), random.Random(asked.chance), Counter[str]()
    nodes = cluster_of(2, 1)
    options = ("--engine", "ray", "--address", nodes.address)
    for study in range(asked.times):
        if killed.total() >= asked.times:
            break
        out, seen = folder / f"killed{study}", {}
        driver = start(path, out, *options)
        while True:
            wait = time.monotonic() + chance.uniform(0.1, 0.6) * usual
            while driver.poll() is None and time.monotonic() < wait:
                time.sleep(0.05)
            if driver.poll() is not None or killed.total() >= asked.times:
                break
            driver = kill_something(chance, killed, nodes, driver, lambda out=out: start(path, out, *options))
            assert written(out).items() >= seen.items(), "a finished run was lost or done again"
            seen = written(out)
        text, _ = driver.communicate()
        assert driver.returncode == 0, text
        assert written(out).items() >= seen.items(), "a finished run was lost or done again"
        assert {key: records(out).get(key) for key in expected} == expected, "another record than on one machine"
        print(f"study {study + 1}: {len(expected)} runs as on one machine; killed so far: {dict(killed)}", flush=True)
    nodes.shutdown()


def kill_something(chance, killed, nodes, driver, again):
    """A worker of Ray, all of a node (another joins), or the driver (started again); gives the driver of now."""
    what = chance.choice(["worker", "worker", "node", "driver"])
    if what == "worker":
        found = workers_of(nodes)
        if not found:
            return driver
        os.kill(chance.choice(found), signal.SIGKILL)
    elif what == "node":
        nodes.remove_node(chance.choice(sorted(nodes.worker_nodes, key=lambda n: n.unique_id)), allow_graceful=False)
        add_node(nodes, 1)
    else:
        driver.kill()
        driver.communicate()
        driver = again()
    killed[what] += 1
    return driver


def workers_of(nodes: Cluster) -> list[int]:
    """The processes of the nodes' workers that are at a load."""
    raylets, found = {node.all_processes["raylet"][0].process.pid for node in nodes.worker_nodes}, []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent in raylets and (folder / "cmdline").read_bytes().startswith(b"ray::do_order"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


# -- overhead ----------------------------------------------------------------------------------------------------------


def study(folder: Path, asked: argparse.Namespace) -> None:
    """A real study on two cores by either engine, in turns, each time from nothing; and on warm nodes."""
    path = folder / "asked.toml"
    path.write_text(STUDY.format(seeds=asked.seeds, epochs=asked.epochs))
    nodes = cluster_of(2, 1)
    for turn in range(asked.turns):
        local = seconds_of(path, folder / f"local{turn}", "--workers", "2")
        there = seconds_of(path, folder / f"ray{turn}", "--engine", "ray", "--address", nodes.address)
        runs = len(records(folder / f"ray{turn}"))
        same = records(folder / f"local{turn}") == records(folder / f"ray{turn}")
        print(
            f"{runs} runs: local {local:.1f} s, Ray {there:.1f} s, {100 * (there / local - 1):+.1f} %; same: {same}; "
            f"load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
    nodes.shutdown()


def sleep(folder: Path, asked: argparse.Namespace) -> None:
    """Tasks that sleep, tell an epoch a second, and send a checkpoint and a run: all but the training is as it is."""
    from equipoise.store import Store
    from equipoise.study import How, Study, jobs_of
    from equipoise.study.run.cluster.connection import connected
    from equipoise.study.run.cluster.engine import RayEngine
    from equipoise.study.run.workers import Workers

    nodes = cluster_of(1, asked.tasks)
    made = Study.from_dict(
        {
            "baseline": "plain",
            "seeds": asked.runs // 2,
            "task": {"name": "digits"},
            "base": {"model": "cnn_small", "epochs": max(1, round(asked.seconds))},
            "methods": {"plain": {}, "focal": {"loss": "focal"}},
        }
    )
    jobs, store = jobs_of(recipe for _, recipe in made.recipes()), Store(folder / "store").create()
    how = How.on("cpu", asked.tasks, engine="ray", address=nodes.address)
    files = {job.training.key: files_for(job) for job in jobs}  # a real task makes its own
    RayEngine._submit = lambda self, jobs: task.remote(asked.seconds, key := jobs[0].training.key, files[key])
    RayEngine.pack_size = lambda self, jobs: 1
    task = connected(nodes.address).task(sleeping, "cpu")
    start_processes(asked.tasks)
    began = time.monotonic()
    done = sum(event.what == "done" for event in Workers(jobs, store, how).events())
    took, least = time.monotonic() - began, -(-asked.runs // asked.tasks) * asked.seconds
    print(f"{done} runs of {asked.seconds} s, {asked.tasks} at a time: {took:.1f} s, at best {least:.1f} s", flush=True)
    print(f"overhead {100 * (took / least - 1):.1f} %; {len(store.records())} records")
    ray.shutdown()  # it is connected to the cluster
    nodes.shutdown()


def start_processes(count: int) -> None:
    """Processes that start are no overhead of a long study: wait until Ray has so many."""

    def number(seconds: float) -> int:
        time.sleep(seconds)
        return os.getpid()

    warm, seconds, started = ray.remote(num_cpus=1)(number), 0.25 * count, 0
    while started < count:  # none may serve two of the tasks, as it does where others take longer to start
        started = len(set(ray.get([warm.remote(seconds) for _ in range(count)])))
        print(f"{started} processes", flush=True)
        seconds *= 1.5


def sleeping(seconds: float, key: str, files: dict[str, bytes]):
    import time

    yield "begun", None
    for epoch in range(max(1, round(seconds))):
        time.sleep(seconds / max(1, round(seconds)))
        yield "epoch", (0, epoch + 1, {"train_loss": 1.0})
        if epoch % 5 == 4:
            yield "checkpoint", (key, bytes(400_000))
    yield "run", (key, files)
    yield "answer", [True]


def files_for(job) -> dict[str, bytes]:
    """A run as large as one of digits."""
    from equipoise.core.files import checksum
    from equipoise.store.checked_json import to_bytes
    from equipoise.study.run.job import failure_of

    rest = {"weights.safetensors": os.urandom(380_000), "valid.npz": os.urandom(20_000), "test.npz": os.urandom(60_000)}
    record = failure_of(job.training, ValueError("it only slept"), 0.0, torch.device("cpu")).to_dict()
    record["files"] = {name: checksum(data) for name, data in rest.items()}
    return rest | {"record.json": to_bytes(record)}


# -- errors ------------------------------------------------------------------------------------------------------------

# a set counts as too large to be sent, so that each node must have it
NOTHING_IS_SENT = """
from equipoise.__main__ import main
from equipoise.study.run.cluster import sets
sets.SENT = 0
main()
"""


def errors(folder: Path, asked: argparse.Namespace) -> None:
    """Each mistake several times; the cluster is there already."""
    path = folder / "asked.toml"
    path.write_text(STUDY.format(seeds=1, epochs=1))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        addresses = {"nothing listens": "127.0.0.1:9", "something else does": f"127.0.0.1:{silent.getsockname()[1]}"}
        for what, address in addresses.items():
            tell(
                what,
                asked.times,
                "no Ray cluster answers",
                path,
                folder / "out",
                "--engine",
                "ray",
                "--address",
                address,
            )
    nodes = cluster_of(1, 1)
    options = ("--engine", "ray", "--address", nodes.address)
    images = own_images(folder / "data" / "noise")
    mine = folder / "mine.toml"
    mine.write_text(path.read_text().replace('name = "digits"', f"name = \"folder(path='{images.name}', size=8)\""))
    code, here = ("-c", NOTHING_IS_SENT), {"EQUIPOISE_DATA": str(images.parent)}
    tell("no images there", asked.times, "not have the images", mine, folder / "out", *options, code=code, env=here)
    other = folder / "other" / "torch-0.4.1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 0.4.1\n")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(other.parent), before := os.environ.get("PYTHONPATH", "")])
    add_node(nodes, 1)
    os.environ["PYTHONPATH"] = before
    tell("another PyTorch there", asked.times, "other software", path, folder / "out", *options)
    nodes.shutdown()


def tell(what: str, times: int, words: str, path: Path, out: Path, *options: str, **how) -> None:
    took = []
    for _ in range(times):
        began = time.monotonic()
        process = start(path, out, *options, **how)
        text, _ = process.communicate()
        assert process.returncode == 2 and words in " ".join(text.split()), text
        took.append(f"{time.monotonic() - began:.1f}")
    print(f"{what}: {', '.join(took)} s; load {os.getloadavg()[0]:.1f}", flush=True)


def own_images(folder: Path) -> Path:
    """Two classes of noise."""
    chance = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (folder / name).mkdir(parents=True)
        for number in range(60):
            Image.fromarray(chance.integers(0, 256, (8, 8, 3), np.uint8)).save(folder / name / f"{number}.png")
    return folder


if __name__ == "__main__":
    main()
