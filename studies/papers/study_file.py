"""`StudyFile`: one study of a paper's table, and its text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equipoise.data import long_tailed_counts, step_counts
from equipoise.reproduction import read_paper
from equipoise.study import expand_preset
from equipoise.study.toml import toml_key, toml_pairs

CIFAR = {"cifar10": (10, 5000), "cifar100": (100, 500)}  # classes, training images of each
COUNTS = {"long_tailed": long_tailed_counts, "step": step_counts}
H200_IMAGES_PER_SECOND = 225_000  # ResNet-32, the packs of a study: docs/results/engine_h200.md


@dataclass(frozen=True)
class Row:
    """A method as the study has it, and the number that the paper prints for it."""

    options: Mapping[str, Any]
    published: str | None = None


@dataclass(frozen=True)
class StudyFile:
    """A study, where it comes from, what is known to differ from the paper, and how many images an epoch has."""

    name: str
    source: str
    question: str
    task: Mapping[str, Any]
    base: Mapping[str, Any]
    rows: Mapping[str, Row]
    images: int
    differs: tuple[str, ...] = ()
    seeds: int = 6
    progress: bool = False
    tune: Mapping[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """The file. The first row is the baseline."""
        head = {"question": self.question, "baseline": next(iter(self.rows)), "metric": "accuracy"}
        lines = [*_comment(self.source)]
        if self.differs:
            lines += _comment(f"Differs: {'; '.join(self.differs)}.")
        lines += [*_comment(f"Cost: {self._cost()}"), *_comment("Written by `make studies` from studies/papers."), ""]
        lines += toml_pairs({**head, "seeds": self.seeds, **({"progress": True} if self.progress else {})})
        lines += ["", "[task]", *toml_pairs(self.task), "", "[base]", *toml_pairs(self.base)]
        if self.tune:
            lines += ["", "[tune]", *toml_pairs(self.tune)]
        for name, row in self.rows.items():
            told = f"  # in the paper: {row.published}" if row.published else ""
            lines += ["", f"[methods.{toml_key(name)}]{told}", *toml_pairs(row.options)]
        return "\n".join(lines) + "\n"

    def _trainings(self) -> list[dict[str, Any]]:
        """The options of each; corrections after training and second stages share the one they begin from."""
        trainings = []
        for row in self.rows.values():
            options = expand_preset(self.base) | expand_preset(row.options)
            own = {name: value for name, value in options.items() if name not in ("posthoc", "stage")}
            if own not in trainings:
                trainings.append(own)
        return trainings

    def _cost(self) -> str:
        trainings = self._trainings()
        runs = self.tune["trials"] * self.tune["seeds"] if self.tune else self.seeds
        images = self.images * runs * sum(options.get("epochs", 200) for options in trainings)
        many = f"{runs * len(trainings):,} trainings{' to tune' if self.tune else ''}, {_large(images)} images in all"
        if {options.get("model") for options in trainings} != {"resnet32"}:
            return f"{many}. `equipoise plan` says how long that takes on your machine."
        # methods with a step of their own need more than one pass for a batch
        about = "more than" if any("procedure" in options for options in trainings) else "about"
        return f"{many}, {about} {_hours(images / H200_IMAGES_PER_SECOND)} on one H200."


def cifar_images(name: str, imbalance: str | None = None, ratio: float = 1) -> int:
    """Training images of CIFAR, cut to a shape."""
    classes, each = CIFAR[name]
    return sum(COUNTS[imbalance](classes, each, ratio)) if imbalance else classes * each


def published(paper: str) -> dict[str, dict[str, str]]:
    """Study -> method -> the number that the paper prints, from the folder `published`."""
    printed: dict[str, dict[str, str]] = {}
    for cell in read_paper(Path(__file__).parent / "published" / f"{paper}.toml").cells:
        printed.setdefault(cell.study, {})[cell.method] = cell.printed
    return printed


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, 118, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False)


def _large(images: float) -> str:
    return f"{images / 1e9:.1f} thousand million" if images >= 1e9 else f"{images / 1e6:.0f} million"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 5400 else f"{max(1, round(seconds / 60))} minutes"
