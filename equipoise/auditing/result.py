"""`Audit`: what was found in a folder of images, for programs, notebooks and pages."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..core.escaping import visible
from ..core.files import write_whole
from ..core.words import counted
from ..data.groups import merged
from .currency import SAW
from .findings import Facts, Finding, findings_of

PARTS = {"train": "training", "valid": "validation", "test": "test"}


@dataclass(frozen=True)
class Audit:
    """`findings` are what a reader must know, the gravest first; `classes` and `files` are tables, as lists of rows."""

    facts: Facts
    judged_by: str

    @property
    def base(self) -> Path:
        return self.facts.listing.base

    @property
    def name(self) -> str:
        return visible(self.base.name)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        return findings_of(self.facts)

    @property
    def is_serious(self) -> bool:
        """Whether a training would fail, or its results would be wrong."""
        return any(finding.gravity == "serious" for finding in self.findings)

    @cached_property
    def classes(self) -> list[dict[str, Any]]:
        """Readable images of each class, by part."""
        counts = {part: self.facts.counts(part) for part in self.facts.listing.parts}
        names = map(visible, self.facts.listing.class_names)
        return [{"class": name, **{part: n[c] for part, n in counts.items()}} for c, name in enumerate(names)]

    @property
    def files(self) -> list[dict[str, Any]]:
        """A row for each image: class, part, size, what kind it is, and the number of the set of copies it is in."""
        copies = {i: n for n, cluster in enumerate(self.facts.clusters) for i in cluster.members}
        return [
            {
                "file": item.name,
                "class": self.facts.class_name(item.label),
                "part": item.part,
                "width": seen.width,
                "height": seen.height,
                "problem": seen.problem,
                "kinds": sorted(seen.marks),
                "copies": copies.get(i),
                "group": item.group,
            }
            for i, (item, seen) in enumerate(zip(self.facts.items, self.facts.seen, strict=True))
        ]

    @property
    def about_labels(self) -> str:
        """How labels were judged, or why they were not."""
        judgement = self.facts.judgement
        if judgement is None:
            return f"Labels were not judged: {self.judged_by}."
        share = f"{100 * judgement.accuracy:.0f} % of each class on average are recognised"
        if not judgement.means_something:
            return (
                f"Labels were not judged: by {self.judged_by} only {share}, too few to doubt a label. "
                "pip install 'equipoise[pretrained]' brings better features."
            )
        return f"Labels were judged by {self.judged_by}, out of fold; {share}."

    @property
    def summary(self) -> str:
        """One sentence."""
        images, classes = len(self.facts.items), len(self.facts.listing.class_names)
        parts = Counter(item.part for item in self.facts.items)
        told = ", ".join(f"{parts[part]:,} {PARTS[part]}" for part in self.facts.listing.parts)
        several = f" ({told})" if len(parts) > 1 else ""
        return f"{counted(images, 'image')}{several} of {counted(classes, 'class', 'classes')}"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        proposal, judgement = self.facts.proposal, self.facts.judgement
        name = [item.name for item in self.facts.items]
        return {
            "folder": str(self.base),
            "images": len(self.facts.items),
            "serious": self.is_serious,
            "classes": self.classes,
            "proposed_group": None if proposal is None else proposal.pattern,
            "labels": {
                "judged_by": self.judged_by,
                "balanced_accuracy": None if judgement is None else round(judgement.accuracy, 4),
            },
            "findings": [
                {
                    "kind": finding.kind,
                    "gravity": finding.gravity,
                    "title": finding.title,
                    "meaning": finding.meaning,
                    "cases": [{"text": row.text, "files": [name[i] for i in row.images]} for row in finding.rows],
                }
                for finding in self.findings
            ],
        }

    def groups_csv(self) -> str:
        """What must stay on one side of a split, as `folder(groups=…)` reads it: copies, and groups that were given."""
        copies: list[int | None] = [None] * len(self.facts.items)
        for n, cluster in enumerate(self.facts.clusters):
            for i in cluster.members:
                copies[i] = n
        groups = merged(len(copies), [copies, [item.group for item in self.facts.items]]).tolist()
        size = Counter(groups)
        return _table(
            ["path", "group"],
            (
                (_harmless(item.name), f"g{group}")
                for item, group in zip(self.facts.items, groups, strict=True)
                if size[group] > 1
            ),
        )

    def leave_out_csv(self) -> str:
        """The files that cannot be read, as `folder(leave_out=…)` reads it."""
        return _table(["path"], ((_harmless(row["file"]),) for row in self.files if row["problem"]))

    def files_csv(self) -> str:
        """Which files were looked at, and what was in them, so that later changes are noticed."""
        seen = zip(self.facts.items, self.facts.seen, strict=True)
        return _table(["path", "sha256"], ((_harmless(item.name), found.digest.hex()) for item, found in seen))

    def write(self, folder: Path | str) -> Path:
        """audit.html, audit.json, files.csv, groups.csv and leave_out.csv in `folder`; the path of the page."""
        from .page import render

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "audit.json", json.dumps(self.to_dict(), indent=1).encode())
        tables = {SAW: self.files_csv(), "groups.csv": self.groups_csv(), "leave_out.csv": self.leave_out_csv()}
        for name, table in tables.items():
            write_whole(folder / name, table.encode(errors="surrogateescape"))
        page = folder / "audit.html"
        write_whole(page, render(self).encode())
        return page

    def __repr__(self) -> str:
        lines = [f"{finding.gravity}: {finding.title}" for finding in self.findings]
        return "\n".join([f"{self.name}: {self.summary}", *(lines or ["nothing to complain of"])])

    def _repr_html_(self) -> str:
        from .page import short

        return short(self)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([columns, *rows])
    return written.getvalue()


def _harmless(name: str) -> str:
    """A path that no spreadsheet takes for a formula, and that still leads to the file."""
    return f"./{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name
