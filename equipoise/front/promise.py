"""What a model of `compare` may promise: its test outputs, with what the audit knows of the test images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..analysis.statistics.expected import expected_balanced_accuracy
from ..auditing import Audit
from ..core import Spec
from ..data import load_task
from ..data.groups import group_tables, groups_of
from ..data.tables import images_table
from ..deploy import Promise, Range
from .results import Results


def promise_of(results: Results, method: str, audit: Audit, task: str) -> Promise:
    """Of any network of `method`, by the test images of the folder that `task` names and `audit` looked through."""
    row_of = {item.name: row for row, item in enumerate(audit.facts.items)}
    files = load_task(task, decode=False).test.images.paths  # type: ignore[union-attr]
    rows = np.array([row_of[path.relative_to(audit.base).as_posix()] for path in files])
    seeds = [run.seed for each in results.collected.methods if each.name == method for run in each.runs if run.finished]
    outputs = [results.predictions(method, seed) for seed in seeds]
    labels = outputs[0]["labels"]
    right = np.stack([each["logits"].argmax(1) == labels for each in outputs])
    groups, sure = _groups(audit, task)[rows], ~np.isin(rows, _doubted(audit))

    def expected(chosen: NDArray[np.bool_]) -> Range:
        return Range(*expected_balanced_accuracy(right[:, chosen], labels[chosen], groups[chosen]))

    return Promise(
        all_labels=expected(np.ones(len(rows), bool)),
        images=len(rows),
        groups=len(np.unique(groups)),
        doubted=int((~sure).sum()),
        undoubted=None if sure.all() or not sure.any() else expected(sure),
        judged=_is_judged(audit),
    )


def _groups(audit: Audit, task: str) -> NDArray[np.int64]:
    """Of each image that the audit saw, the group that splits kept whole."""
    options = dict(Spec.parse(task).params)
    file, group = options.get("groups"), options.get("group")
    tables = group_tables(images_table(Path(options["path"])), Path(file) if file else None, group)
    return groups_of([item.name for item in audit.facts.items], group, tables)


def _is_judged(audit: Audit) -> bool:
    return audit.facts.judgement is not None and audit.facts.judgement.means_something


def _doubted(audit: Audit) -> list[int]:
    judged = audit.facts.judgement
    return [suspect.image for suspect in judged.suspects] if judged is not None and judged.means_something else []
