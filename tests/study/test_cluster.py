"""A real Ray cluster on one machine: a head and two nodes, each with a core, as processes of their own."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

import equipoise
from equipoise.core import EquipoiseError
from equipoise.study import Listener, Watch
from equipoise.study.run.cluster.connection import connected
from equipoise.study.run.cluster.facts import facts
from equipoise.study.run.cluster.task import find_set

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'equipoise[ray]'")

STUDY = """
question = "Does a study on a cluster end as one on this machine?"
baseline = "plain"
seeds = 2
[task]
name = "digits"
imbalance = "long_tailed"
ratio = 20
[base]
model = "cnn_small(width=8)"
epochs = 40
[methods.plain]
[methods.mfw]
mix = "mfw(alpha=1.0)"
[methods.adjusted]
posthoc = "logit_adjust(tau=1.0)"
"""
RUNS = 6


@pytest.fixture(scope="module")
def nodes():
    """The cluster; its head trains nothing. Ray's workers would otherwise yield to every other process here."""
    from ray.cluster_utils import Cluster as Nodes

    patch = pytest.MonkeyPatch()
    patch.setenv("RAY_worker_niceness", "0")
    found = Nodes(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(2):
        found.add_node(num_cpus=1)
    yield found
    ray.shutdown()
    connected.cache_clear()
    found.shutdown()
    patch.undo()


@pytest.fixture
def asked(tmp_path):
    path = tmp_path / "asked.toml"
    path.write_text(STUDY)
    return path


def records(out):
    """What the records say, but for when and how long; the checksums of their files among it."""
    found = {}
    for path in out.glob("runs/*/record.json"):
        plain = json.loads(path.read_text())
        found[plain["key"]] = {name: plain[name] for name in ("recipe", "state", "metrics", "curves", "files", "data")}
    return found


def written(out):
    return {path.parent.name: path.stat().st_mtime_ns for path in out.glob("runs/*/record.json")}


def wait_for(condition, seconds=300):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def workers_of(nodes):
    """The processes of workers that are at a load, and the node of each."""
    raylets = {node.all_processes["raylet"][0].process.pid: node for node in nodes.worker_nodes}
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent in raylets and (folder / "cmdline").read_bytes().startswith(b"ray::do_order"):
                found[int(folder.name)] = raylets[parent]
        except OSError:
            continue
    return found


class Killer(Listener, Watch):
    """Kills a worker when a run is at work, and after that has begun again a node, which is replaced."""

    def __init__(self, nodes):
        self.nodes, self.killed, self.said = nodes, [], []

    def runs(self, names, total, done):
        return nullcontext(self)

    def event(self, event, store):
        self.said += [event.error] if event.what == "again" else []
        if event.what != "epoch" or len(self.killed) != len(self.said) or not (at_work := workers_of(self.nodes)):
            return
        process, node = next(iter(at_work.items()))
        if not self.killed:
            os.kill(process, signal.SIGKILL)
            self.killed.append("worker")
        elif len(self.killed) == 1:
            self.nodes.remove_node(node, allow_graceful=False)
            self.nodes.add_node(num_cpus=1, wait=False)
            self.killed.append("node")


def test_killed_workers_nodes_and_drivers_leave_the_records_of_one_machine(nodes, asked, tmp_path):
    command = [sys.executable, "-m", "equipoise", "run", asked, "--out", tmp_path / "ray"]
    with subprocess.Popen([*command, "--engine", "ray", "--address", nodes.address]) as driver:
        wait_for(lambda: written(tmp_path / "ray"))
        driver.kill()
    seen = written(tmp_path / "ray")
    killer = Killer(nodes)
    equipoise.run(asked, tmp_path / "ray", engine="ray", address=nodes.address, listener=killer)
    assert killer.killed == ["worker", "node"] and len(killer.said) >= 2
    assert all("its worker or node is gone" in why for why in killer.said)
    assert written(tmp_path / "ray").items() >= seen.items(), "a finished run was lost or done again"
    equipoise.run(asked, tmp_path / "local", listener=Listener(), device="cpu", workers=2)
    assert len(records(tmp_path / "local")) >= RUNS
    assert records(tmp_path / "ray") == records(tmp_path / "local")


def test_nodes_with_other_software_are_named(nodes, monkeypatch):
    cluster = connected(nodes.address)
    cluster.on_each_node(facts, seconds=300)  # once their processes run, nodes answer at once
    cluster.check_nodes()
    monkeypatch.setitem(cluster.software, "torch", "0.4.1")
    version = torch.__version__.partition("+")[0]
    lines = rf"other software.*\n(  .*: torch {version} \(here 0\.4\.1\)\n)+Install the same versions"
    with pytest.raises(EquipoiseError, match=lines):
        cluster.check_nodes()


def test_a_node_without_the_images_is_named(nodes, tmp_path):
    choice = {"name": f"folder(path='{tmp_path / 'only_here'}', size=8)"}
    told = "the node .* cannot be used: it does not have the images of folder.*only_here"
    with pytest.raises(EquipoiseError, match=told):
        connected(nodes.address).on_each_node(find_set, choice, seconds=300)  # a busy machine takes its time


def test_a_node_that_dies_while_it_is_asked_is_passed_over(nodes, monkeypatch):
    cluster = connected(nodes.address)
    there = [node for node in cluster.ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    monkeypatch.setattr(cluster.ray, "nodes", lambda: [*there, {**there[0], "NodeID": "ab" * 28}])
    assert len(cluster.on_each_node(facts, seconds=300)) == len(there) == 2, "the head trains nothing"
