"""`Aim`: the score that a study is about, of a run's validation data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...analysis import METRICS, Metric
from ...analysis.statistics.priority import ALL_METRICS, Priority, score
from ...store import Record
from ...train import Recipe
from .records import Records

FEWEST_EPOCHS = 4  # of a run that is judged half-way


@dataclass(frozen=True)
class Aim:
    """A metric's name, and the study's priority where the metric needs one."""

    metric: str
    priority: Priority | None = None

    @property
    def entry(self) -> Metric:
        return ALL_METRICS[self.metric]

    def curve(self, record: Record, records: Records) -> Sequence[float]:
        """Its values after each epoch, or only the last one where no curve was kept; none without validation data.

        Curves are kept of the metrics that are the same in every study, and of trainings, not of what corrects them.
        """
        name = f"valid_{self.metric}"
        if name in record.metrics:
            return record.curves.get(name) or [record.metrics[name]]
        if self.metric in METRICS or self.priority is None:
            return []
        valid = records.valid(record.key)
        if not len(valid["labels"]):
            return []
        counts = np.array(record.class_counts)
        return [score(valid["logits"], valid["labels"], counts, self.priority, record.class_names)]

    def half_of(self, recipe: Recipe) -> int | None:
        """The epoch at which a run of `recipe` is judged half-way; None where it has no curve, or hardly any epochs.

        A second stage and a post-hoc method begin where a training has ended.
        """
        has_curve = self.metric in METRICS and recipe.stage is None and recipe.posthoc is None
        return recipe.plan.epochs // 2 if has_curve and recipe.plan.epochs >= FEWEST_EPOCHS else None
