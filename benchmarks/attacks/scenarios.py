"""What is killed: commands on small studies, each with what is there when it has ended undisturbed."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from . import reference
from .command import Said, real
from .contents import contents
from .warm import Warm


@dataclass
class Scenario:
    """A command that is killed: what lies in its folder before, and what is there when it has ended undisturbed."""

    name: str
    likely: int
    lay_out: Callable[[Path], None]
    command: tuple[str, ...]
    seconds: float = 0.0
    whole: dict[str, bytes] = field(default_factory=dict)


def scenarios_of(folder: Path, device: str) -> list[Scenario]:
    there = ("--out", "out", "--workers", "2", "--device", device)
    finished = folder / "whole_run" / "out"

    def text(name: str, content: str) -> Callable[[Path], None]:
        return lambda target: _begun(target, content, folder / f"whole_{name}" / "out")

    def of_finished(target: Path) -> None:
        shutil.copytree(finished, target / "out")

    rounds = ("run", "study.toml", "--until-decided", "--max-runs", "12", *there)
    return [
        Scenario("run", 8, text("run", reference.STUDY), ("run", "study.toml", *there)),
        Scenario("tune", 5, text("tune", reference.TUNE), ("tune", "study.toml", *there)),
        Scenario("rounds", 4, text("rounds", reference.ROUNDS), rounds),
        Scenario("analyze", 2, of_finished, ("analyze", "out", "--device", device)),
        Scenario("report", 1, of_finished, ("report", "out")),
    ]


def _begun(target: Path, content: str, whole: Path) -> None:
    """The study's file, and what was measured of this machine: another memory layout would round otherwise."""
    (target / "study.toml").write_text(content)
    if (whole / "engine.json").exists():
        (target / "out").mkdir()
        shutil.copy(whole / "engine.json", target / "out")


def measure(folder: Path, warm: Warm | None, latest: float, deadline: float, scenario: Scenario) -> Scenario | None:
    """Run the command undisturbed, as a user does; where it will be killed warm, once more like that, for its time.

    None where it cannot begin before `latest` or end before `deadline`. What is reported or analyzed waits for the
    study that it is made from.
    """
    target, whole = folder / f"whole_{scenario.name}", folder / "run_is_whole"
    while scenario.command[0] in ("report", "analyze") and not whole.exists() and time.monotonic() < latest:
        time.sleep(0.2)
    began = time.monotonic()
    if began > latest:
        return None
    try:
        _undisturbed(scenario, target, real, deadline)
        if scenario.name == "run":
            whole.touch()
        if warm is not None:
            began = time.monotonic()
            _undisturbed(scenario, folder / f"timed_{scenario.name}", warm.said, deadline)
    except subprocess.TimeoutExpired:
        return None
    scenario.seconds, scenario.whole = time.monotonic() - began, contents(target / "out")
    return scenario


def _undisturbed(scenario: Scenario, target: Path, said: Callable[..., Said], deadline: float) -> None:
    target.mkdir(parents=True)
    scenario.lay_out(target)
    done = said(*scenario.command, folder=target, seconds=deadline - time.monotonic())
    if done.code:
        raise RuntimeError(f"{' '.join(scenario.command)} undisturbed ended with {done.code}: {done.text[-2000:]}")
