"""What to expect of a model on new images of the same kind."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.words import counted
from ..store.filled import Filled


@dataclass(frozen=True)
class Range:
    """A balanced accuracy and the 95 % interval for one network on new images."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f} % (95 % interval {100 * self.low:.1f} to {100 * self.high:.1f} %)"


@dataclass(frozen=True)
class Promise(Filled):
    """The balanced accuracy on `images` test images in `groups` that belong together.

    The audit doubts the labels of `doubted` of them; `undoubted` is the same without these. Which of the two holds
    depends on how many of the doubts are justified: what is wrong looks like a mistake of the model, and an image that
    is hard to recognise looks like a wrong label. Where labels are not `judged`, wrong ones make the promise too low.
    """

    all_labels: Range
    images: int
    groups: int
    doubted: int = 0
    undoubted: Range | None = None
    judged: bool = True

    @property
    def low(self) -> float:
        return min(each.low for each in self._ranges)

    @property
    def high(self) -> float:
        return max(each.high for each in self._ranges)

    @property
    def _ranges(self) -> list[Range]:
        return [self.all_labels] if self.undoubted is None else [self.all_labels, self.undoubted]

    def __str__(self) -> str:
        among = f" in {counted(self.groups, 'group')}" if self.groups < self.images else ""
        first = f"{self.all_labels}, judged by {counted(self.images, 'test image')}{among}"
        if self.undoubted is None:
            unknown = "" if self.judged else " Labels were not judged: where some are wrong, expect more."
            return f"Balanced accuracy to expect of new images: {first}.{unknown}"
        return (
            f"Balanced accuracy to expect of new images: {first}; {self.undoubted} without the {self.doubted:,} of "
            "them whose labels the audit doubts. The first holds if these labels are right, the second if they are "
            "wrong."
        )
