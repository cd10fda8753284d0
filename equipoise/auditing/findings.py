"""What an audit found, in words: how grave it is, what it will mean, and every image that it is about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Literal

import numpy as np

from ..core.escaping import visible
from ..core.words import counted
from .duplicates import Cluster
from .labels import Judgement
from .listing import NO_CLASS, Item, Listing
from .look import KINDS, Seen
from .names import Proposal

Gravity = Literal["serious", "warning", "note"]
GRAVITIES: tuple[Gravity, ...] = ("serious", "warning", "note")
FEW = 10  # training images of a class
LONG_TAILED = 10  # largest class over smallest
WARNINGS = ("tiny", "blank")  # of the kinds of images


@dataclass(frozen=True)
class Row:
    """One case of a finding: what is to be said, and the images (indices) that it is about, if there are any."""

    text: str
    images: tuple[int, ...] = ()


@dataclass(frozen=True)
class Finding:
    """`kind` is its name for programs, `meaning` says what it will do to a training and what helps."""

    kind: str
    gravity: Gravity
    title: str
    meaning: str
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True)
class Facts:
    """All that findings are made of."""

    listing: Listing
    seen: Sequence[Seen]
    clusters: Sequence[Cluster]
    judgement: Judgement | None
    proposal: Proposal | None

    @property
    def items(self) -> list[Item]:
        return self.listing.items

    def class_name(self, label: int) -> str:
        return "no class" if label == NO_CLASS else visible(self.listing.class_names[label])

    def counts(self, part: str) -> list[int]:
        """Readable images of each class."""
        labels = [i.label for i, s in zip(self.items, self.seen, strict=True) if i.part == part and not s.problem]
        known = np.array([label for label in labels if label != NO_CLASS], np.int64)
        return np.bincount(known, minlength=len(self.listing.class_names)).tolist()


def findings_of(facts: Facts) -> tuple[Finding, ...]:
    """The gravest first."""
    found = [*_layout(facts), *_files(facts), *_doubles(facts), *_sizes(facts), *_labels(facts), *_groups(facts)]
    return tuple(sorted((f for f in found if f.rows or f.kind in ("imbalance", "groups")), key=_rank))


def _rank(finding: Finding) -> int:
    return GRAVITIES.index(finding.gravity)


def _layout(facts: Facts) -> Iterator[Finding]:
    rows = tuple(Row(problem) for problem in facts.listing.problems)
    yield Finding(
        "layout", "serious", counted(len(rows), "thing") + " in the way",
        "A task would refuse this folder, or leave something out. Each line says what to do.", rows,
    )  # fmt: skip
    lost = tuple(Row(visible(i.name), (n,)) for n, i in enumerate(facts.items) if i.label == NO_CLASS)
    yield Finding(
        "no_class", "warning", counted(len(lost), "image") + " of no class",
        "They lie beside the folders of classes, or have no label, and would not be used. Put each into the folder of "
        "its class.", lost,
    )  # fmt: skip
    foreign = tuple(Row(f"{visible(name)}: {how}") for name, how in facts.listing.foreign)
    yield Finding(
        "foreign", "warning", counted(len(foreign), "file") + " of formats that are not read",
        "They would be left out without a word.", foreign,
    )  # fmt: skip


def _files(facts: Facts) -> Iterator[Finding]:
    named = list(zip(facts.items, facts.seen, strict=True))
    broken = tuple(Row(f"{visible(i.name)}: {s.problem}") for i, s in named if s.problem)
    yield Finding(
        "unreadable", "serious", counted(len(broken), "file") + " cannot be read",
        "A training would stop before it begins. Mend them, copy them again, take them away, or leave them out: "
        "leave_out='leave_out.csv' in the task.", broken,
    )  # fmt: skip
    for kind, (words, meaning) in KINDS.items():
        rows = tuple(
            Row(f"{visible(i.name)}, {s.width}\u00a0×\u00a0{s.height}", (n,))
            for n, (i, s) in enumerate(named)
            if kind in s.marks
        )
        if kind not in ("grey", "coloured") or len(rows) <= len(named) / 2:  # of two colours, the rarer one is told
            yield Finding(kind, "warning" if kind in WARNINGS else "note", counted(len(rows), *words), meaning, rows)


def _doubles(facts: Facts) -> Iterator[Finding]:
    items = facts.items
    several_parts = [len({items[i].part for i in c.members}) > 1 for c in facts.clusters]
    several_labels = [len({items[i].label for i in c.members}) > 1 for c in facts.clusters]
    torn = [*compress(facts.clusters, several_parts)]
    contradicting = [*compress(facts.clusters, several_labels)]
    rest = [c for c, a, b in zip(facts.clusters, several_parts, several_labels, strict=True) if not (a or b)]
    yield Finding(
        "two_classes", "serious", counted(len(contradicting), "image") + " under two labels",
        "At least one label is wrong; the network is told two things of one image. Keep one.",
        tuple(_double(facts, c) for c in contradicting),
    )  # fmt: skip
    yield Finding(
        "two_parts", "serious", counted(len(torn), "image") + " in two parts",
        "What is trained on is also tested: results would be better than they are. Take them out of one part.",
        tuple(_double(facts, c) for c in torn),
    )  # fmt: skip
    drawn = not {"test", "valid"} <= {*facts.listing.parts}
    split = (
        " Parts that are drawn by chance would tear them apart: groups='groups.csv' in the task keeps them together."
    )
    yield Finding(
        "duplicates", "warning", counted(len(rest), "image has", "images have") + " copies",
        "Copies add nothing, and count twice in training and in results." + (split if drawn else ""),
        tuple(_double(facts, c) for c in rest),
    )  # fmt: skip


def _double(facts: Facts, cluster: Cluster) -> Row:
    how = "the same file" if cluster.exact else "nearly the same"
    several = len(facts.listing.parts) > 1
    names = (
        f"{visible(facts.items[i].name)} ({facts.class_name(facts.items[i].label)}"
        + (f", {facts.items[i].part})" if several else ")")
        for i in cluster.members
    )
    return Row(f"{how}: {', '.join(names)}", cluster.members)


def _sizes(facts: Facts) -> Iterator[Finding]:
    names = [facts.class_name(label) for label in range(len(facts.listing.class_names))]
    counts = facts.counts("train")
    there = [n for n in counts if n]
    without = tuple(Row(name) for name, n in zip(names, counts, strict=True) if not n)
    yield Finding(
        "empty_class", "serious", counted(len(without), "class", "classes") + " without training images",
        "A class that is never seen cannot be learned: add images, or take the class away.", without,
    )  # fmt: skip
    few = tuple(Row(f"{name}: {n}") for name, n in zip(names, counts, strict=True) if 0 < n < FEW)
    yield Finding(
        "few", "warning", counted(len(few), "class", "classes") + f" of fewer than {FEW} training images",
        "Too few to learn from and to be sure of the result; more images help more than any method.", few,
    )  # fmt: skip
    if len(there) > 1 and max(there) >= LONG_TAILED * min(there):
        ratio = max(there) / min(there)
        yield Finding(
            "imbalance", "note", f"the largest class has {ratio:.0f} times the images of the smallest",
            "Plain training favours large classes. Look at balanced accuracy, and compare methods for rare classes.",
        )  # fmt: skip


def _labels(facts: Facts) -> Iterator[Finding]:
    judged = facts.judgement
    if judged is None or not judged.means_something:
        return
    rows = tuple(
        Row(
            f"{visible(facts.items[s.image].name)}: labelled {facts.class_name(facts.items[s.image].label)}, looks "
            f"like {facts.class_name(s.looks_like)}",
            (s.image,),
        )
        for s in judged.suspects
    )
    yield Finding(
        "labels", "warning", counted(len(rows), "label") + " that may be wrong",
        "Look at each, the surest first; some will be right. Wrong labels hurt rare classes most.", rows,
    )  # fmt: skip


def _groups(facts: Facts) -> Iterator[Finding]:
    of_group: dict[str, list[int]] = {}
    for i, item in enumerate(facts.items):
        if item.group is not None:
            of_group.setdefault(item.group, []).append(i)
    torn = {g: rows for g, rows in of_group.items() if len({facts.items[i].part for i in rows}) > 1}
    yield Finding(
        "torn_groups", "serious", counted(len(torn), "group") + " in two parts",
        "Images that belong together are trained on and tested: results would be better than they are.",
        tuple(
            Row(f"{visible(g)}: {', '.join(visible(facts.items[i].name) for i in rows)}") for g, rows in torn.items()
        ),
    )  # fmt: skip
    if facts.proposal is not None:
        yield Finding(
            "groups", "warning", f"file names tell of {facts.proposal.groups:,} groups",
            f"{facts.proposal.reason}. If they are films, persons or objects, keep each on one side of every split: "
            f"group = '{facts.proposal.pattern}'",
        )  # fmt: skip
