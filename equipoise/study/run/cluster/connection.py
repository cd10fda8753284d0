"""Finds the cluster, and refuses one that does not answer or would compute something else; in seconds, not minutes."""

from __future__ import annotations

import atexit
import logging
import os
import socket
import uuid
from contextlib import suppress
from functools import lru_cache
from typing import Any

from ....core import EquipoiseError, known
from ....core.extras import require
from . import facts as facts_file
from .facts import differences, facts
from .task import warm_up
from .workplace import leave

SECONDS = 5.0  # for an address to answer, and for each node to say what it has
MOST_WARM = 32  # places where processes are started before it is known how many runs there are
PORT = 6379  # Ray's own, where an address has none
HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HTTP2_NO_SETTINGS = b"\0\0\0\4\0\0\0\0\0"  # a frame of length 0, of the type 4


class Cluster:
    """The cluster that this process is connected to."""

    def __init__(self, address: str | None) -> None:
        require("--engine ray", "ray")
        _check_address(address)
        import ray

        self.ray = ray
        self.software = facts()
        self.driver = uuid.uuid4().hex  # names our folders on the nodes
        self.sent: dict[Any, Any] = {}  # data sets that its object store holds
        self._connect(address)
        ray.cloudpickle.register_pickle_by_value(facts_file)
        self._asked = self._ask(facts)
        atexit.register(self._leave)

    def _connect(self, address: str | None) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": True}
        try:
            if not self.ray.is_initialized():
                self.ray.init(address, include_dashboard=None if address else False, **quiet)
        except (ConnectionError, TimeoutError) as error:
            raise EquipoiseError(_no_answer(address, str(error))) from None
        except RuntimeError as error:
            if "ersion mismatch" not in str(error):
                raise
            raise EquipoiseError(f"the Ray cluster at {address} cannot be used: {error}") from None

    def _leave(self) -> None:
        """Tell the nodes to remove our folders."""
        with suppress(Exception):  # a cluster that is gone has nothing to remove
            if self.ray.is_initialized():
                self.on_each_node(leave, self.driver, seconds=2.0)

    # -- what it has -------------------------------------------------------------------------------------------------

    def device(self, name: str | None) -> str:
        """The kind of device asked for; else GPUs if there are any."""
        gpus = self.ray.cluster_resources().get("GPU", 0)
        return known("device with --engine ray", name, ["cpu", "cuda"]) if name else "cuda" if gpus else "cpu"

    def places(self, device: str) -> int:
        """How many packs can be trained at a time now; at least one, for nodes may be on their way."""
        return max(1, int(self.ray.cluster_resources().get("GPU" if device == "cuda" else "CPU", 0)))

    def is_idle(self, device: str) -> bool:
        """Whether there is a place for one more."""
        free = self.ray.available_resources()
        return free.get("CPU", 0) >= 1 and (device == "cpu" or free.get("GPU", 0) >= 1)

    def task(self, function: Any, device: str) -> Any:
        """A remote function that takes one place. Nothing is retried by Ray: it knows of no checkpoints."""
        gpus: dict[str, Any] = {"num_gpus": 1} if device == "cuda" else {}
        return self.ray.remote(num_cpus=1, max_retries=0, **gpus)(function)

    def warm_up(self, device: str | None, workers: int | None) -> None:
        """Let nodes start processes for the first packs, which takes seconds, while this one does something else."""
        kind = self.device(device)
        task = self.task(warm_up, kind)
        for _ in range(min(workers or MOST_WARM, self.places(kind), MOST_WARM)):
            task.remote(kind, self.software, *self._asked)  # begins when all nodes have answered

    # -- nodes -------------------------------------------------------------------------------------------------------

    def check_nodes(self) -> None:
        """Refuse nodes with other software; one that says nothing in time is asked again before each pack."""
        there = self._answers(self._asked, SECONDS)
        wrong = [f"  {name}: {told}" for name, theirs in there.items() if (told := differences(self.software, theirs))]
        if wrong:
            raise EquipoiseError(
                "nodes of the cluster have other software than this machine, and would compute something else:\n"
                + "\n".join(wrong)
                + "\nInstall the same versions there, and equipoise from the same source"
            )

    def on_each_node(self, function: Any, *args: Any, seconds: float = SECONDS) -> dict[str, Any]:
        """What `function` gives on each node that trains, by its name; without those that do not answer in time."""
        return self._answers(self._ask(function, *args), seconds)

    def _ask(self, function: Any, *args: Any) -> dict[Any, str]:
        """The names of the nodes by the answers that will come. A head without cores gets no packs: it is not asked."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        remote = self.ray.remote(num_cpus=0, max_retries=0)(function)
        nodes = {
            _name(node): node["NodeID"] for node in self.ray.nodes() if node["Alive"] and node["Resources"].get("CPU")
        }
        return {
            remote.options(scheduling_strategy=NodeAffinitySchedulingStrategy(identity, soft=False)).remote(*args): name
            for name, identity in nodes.items()
        }

    def _answers(self, asked: dict[Any, str], seconds: float) -> dict[str, Any]:
        if not asked:
            return {}
        answered, _ = self.ray.wait(list(asked), num_returns=len(asked), timeout=seconds)
        found = {}
        for answer in answered:
            try:
                found[asked[answer]] = self.ray.get(answer)
            except self.ray.exceptions.RayTaskError as error:
                raise EquipoiseError(f"the node {asked[answer]} of the cluster cannot be used: {error.cause}") from None
            except self.ray.exceptions.RayError:  # it has died meanwhile
                continue
        return found


@lru_cache(maxsize=1)
def connected(address: str | None) -> Cluster:
    """The cluster there, which this process stays connected to."""
    return Cluster(address)


def _name(node: dict[str, Any]) -> str:
    return f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']}, {node['NodeID'][:6]})"


def _check_address(address: str | None) -> None:
    if address is None or address in ("auto", "local"):
        return
    if "://" in address:
        raise EquipoiseError(
            f"--address {address} is for programs outside a cluster: run equipoise on one of its machines, with "
            "--address auto or HOST:PORT, or submit it there with 'ray job submit' (docs/cluster.md)"
        )
    host, _, port = address.rpartition(":") if ":" in address else (address, "", str(PORT))
    try:
        with socket.create_connection((host, int(port)), timeout=SECONDS) as line:
            _greet(line)
    except (OSError, ValueError) as error:
        raise EquipoiseError(_no_answer(address, str(error))) from None


def _greet(line: socket.socket) -> None:
    """Ray speaks HTTP/2, where both sides begin by sending settings; by itself it would wait for a minute and more."""
    if os.environ.get("RAY_USE_TLS") == "1":
        return
    line.sendall(HTTP2_PREFACE + HTTP2_NO_SETTINGS)
    if line.recv(len(HTTP2_NO_SETTINGS), socket.MSG_WAITALL)[3:4] != HTTP2_NO_SETTINGS[3:4]:
        raise OSError("what listens there is not Ray")


def _no_answer(address: str | None, why: str) -> str:
    where = "on this machine" if address in (None, "auto") else f"at {address}"
    return (
        f"no Ray cluster answers {where} ({why.strip().splitlines()[0]}): start one with 'ray start --head', and give "
        "the address that it prints; without --address one is started here for the time of the study"
    )
