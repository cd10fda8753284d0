"""What is attacked: small real studies, made by the real commands, and a training stopped half-way."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from .command import real

STUDY = """\
question = "Does it end as if nothing had happened?"
baseline = "plain"
seeds = 2
progress = true
[task]
name = "digits"
imbalance = "long_tailed"
ratio = 20
valid = 0.2
[base]
model = "cnn_small"
epochs = 3
[methods.plain]
[methods.mfw]
mix = "mfw(alpha=1.0)"
weighting = "effective_number(beta=0.999, start=0.5)"
[methods.adjusted]
posthoc = "logit_adjust(tau=1.0)"
[methods.crt]
stage = "crt"
"""

ROUNDS = """\
question = "Does it end as if nothing had happened?"
baseline = "plain"
seeds = 2
[task]
name = "blobs"
imbalance = "long_tailed"
ratio = 20
n_max = 60
valid = 0.4
[base]
epochs = 2
[methods.plain]
[methods.adjusted]
posthoc = "logit_adjust(tau=1.0)"
"""

TUNE = ROUNDS.replace("seeds = 2\n", "").replace(
    "[methods.plain]",
    """\
[tune]
trials = 4
sampler = "tpe"
seeds = 2
[tune.space]
lr = [0.05, 0.1, 0.2]
[methods.plain]""",
)

HERE = ("--out", "out", "--workers", "2", "--device", "cpu")
RUN = ("run", "study.toml", *HERE)
RUN_IN_ROUNDS = ("run", "study.toml", "--until-decided", "--max-runs", "12", *HERE)
ANALYZE = ("analyze", "out", "--device", "cpu")
PATIENCE = 1200.0  # seconds for a command to end by itself; on a busy machine a study of low priority takes minutes


def make(folder: Path, text: str, *commands: tuple[str, ...]) -> Path:
    """FOLDER/study.toml and what the commands made of it in FOLDER/out, unless that was done before."""
    if folder.exists():
        return folder
    folder.mkdir(parents=True)
    (folder / "study.toml").write_text(text)
    for command in commands:
        said = real(*command, folder=folder, seconds=PATIENCE)
        if said.code:
            raise RuntimeError(f"the undamaged study does not run: {said.text}")
    return folder


def copy(source: Path, target: Path) -> None:
    """The same files by links, at once: the tool never writes into a file, and damage is written beside and renamed."""
    shutil.copytree(source, target, copy_function=os.link)
    for path in target.rglob("*.db"):  # but SQLite does
        replace(path, path.read_bytes())


def replace(path: Path, content: bytes) -> None:
    """Another content, without touching files that share the old one."""
    aside = path.with_name("damaged.new")
    aside.write_bytes(content)
    aside.replace(path)


class HalfWay:
    """A training stopped after its first epoch: FOLDER/checkpoint.pt, and the way a worker takes it up."""

    def __init__(self, folder: Path) -> None:
        import torch

        from equipoise.data import load_task
        from equipoise.train import Recipe

        self.task = load_task("blobs", imbalance="long_tailed", ratio=10, n_max=40)
        self.recipe = Recipe.make({"epochs": 3, "ema": 0.9, "mix": "mixup"}, {"name": "blobs"})
        self.device, self.folder = torch.device("cpu"), folder
        fitting = self.taken_up(folder)
        self.fresh = flat(fitting)
        fitting.train_epoch()
        fitting.save()
        self.state = flat(self.taken_up(folder))

    def taken_up(self, folder: Path) -> Any:
        """As a worker does it: from the checkpoint of `folder`, or from the start."""
        from equipoise.train import Fitting, Run

        run = Run(self.recipe, self.task, self.device)
        return Fitting(run, lambda logits, labels: {"mean": float(logits.mean())}, folder)


def flat(fitting: Any) -> list[tuple[str, bytes]]:
    """All that decides how a training goes on, to the bit."""
    import torch

    found: list[tuple[str, bytes]] = []

    def walk(name: str, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            found.append((name, value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()))
        elif isinstance(value, dict):
            for key, inner in value.items():
                walk(f"{name}.{key}", inner)
        elif isinstance(value, list | tuple):
            for place, inner in enumerate(value):
                walk(f"{name}.{place}", inner)
        else:
            found.append((name, repr(value).encode()))

    walk("run", {k: v for k, v in fitting.run.state_dict().items() if k != "global_stream"})
    walk("curves", fitting.curves)
    return found
