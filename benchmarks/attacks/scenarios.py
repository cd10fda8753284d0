"""What is killed: commands on small studies, each with what is there when it has ended undisturbed."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from . import reference
from .command import environment, line
from .contents import contents


@dataclass
class Scenario:
    """A command that is killed: what lies in its folder before, and what is there when it has ended undisturbed."""

    name: str
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

    return [
        Scenario("run", text("run", reference.STUDY), ("run", "study.toml", *there)),
        Scenario("tune", text("tune", reference.TUNE), ("tune", "study.toml", *there)),
        Scenario(
            "rounds",
            text("rounds", reference.ROUNDS),
            ("run", "study.toml", "--until-decided", "--max-runs", "12", *there),
        ),
        Scenario("report", of_finished, ("report", "out")),
        Scenario("analyze", of_finished, ("analyze", "out", "--device", device)),
    ]


LIKELY = (8, 5, 4, 1, 2)


def _begun(target: Path, content: str, whole: Path) -> None:
    """The study's file, and what was measured of this machine: another memory layout would round otherwise."""
    (target / "study.toml").write_text(content)
    if (whole / "engine.json").exists():
        (target / "out").mkdir()
        shutil.copy(whole / "engine.json", target / "out")


def measure(folder: Path, scenario: Scenario) -> None:
    """Run the command undisturbed; what is reported or analyzed waits for the study that it is made from."""
    target = folder / f"whole_{scenario.name}"
    target.mkdir(parents=True)
    while scenario.command[0] in ("report", "analyze") and not (folder / "run_is_whole").exists():
        time.sleep(0.2)
    scenario.lay_out(target)
    began = time.monotonic()
    done = subprocess.run(
        line(*scenario.command), cwd=target, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    scenario.seconds = time.monotonic() - began
    if scenario.name == "run":
        (folder / "run_is_whole").touch()
    if done.returncode:
        raise RuntimeError(
            f"{' '.join(scenario.command)} undisturbed ended with {done.returncode}: {done.stdout[-2000:]!r}"
        )
    scenario.whole = contents(target / "out")
