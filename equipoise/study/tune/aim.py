"""`Aim`: the score that a study is about, of a run's validation data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...analysis import METRICS, Metric
from ...analysis.statistics.priority import ALL_METRICS, Priority, score
from ...store import Record
from .records import Records


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
