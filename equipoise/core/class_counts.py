"""Modules that know how many images each class has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor, nn

from . import checks
from .tracing import is_watched


class KnowsCounts(nn.Module):
    """Keeps the number of images of each class in the buffer `class_counts`; a subclass writes what is `derived`.

    Counts are facts, not weights: they are there where a module is built on the meta device, whole when it is cast to
    half precision, and come along when `to_empty` gives weights fresh memory. What is derived from them is no buffer,
    so that nothing of this can happen to it either. A subclass may name other buffers of this kind in `facts`.
    """

    class_counts: Tensor | None
    facts: tuple[str, ...] = ("class_counts",)

    def __init__(self, class_counts: checks.Counts | None, persistent: bool = True) -> None:
        super().__init__()
        counts = None if class_counts is None else checks.counts(class_counts).long()
        # for when a buffer is on the meta device, which keeps no numbers
        self._last_known: dict[str, Tensor] = {} if counts is None else {"class_counts": counts}
        self.register_buffer("class_counts", counts, persistent)
        self._ready: tuple[Tensor, int, Tensor] | None = None

    def derived(self, counts: Tensor) -> Tensor:
        """What a subclass makes of its counts (C,), float64; `ready` asks for it once."""
        raise NotImplementedError

    def ready(self, dtype: torch.dtype, device: torch.device) -> Tensor:
        """`derived` in this type and on this device, computed anew only when the counts have changed."""
        counts = self._known_counts()
        if is_watched() or counts.is_inference():  # such a tensor does not count its changes
            return self.derived(counts.double()).to(device, dtype)
        if self._ready is not None and self._ready[0] is counts and self._ready[1] == counts._version:
            kept = self._ready[2]
            if kept.dtype is dtype and kept.device == device:
                return kept
        with torch.inference_mode(False):  # what is made there could not be used in training later
            fresh = self.derived(counts.double()).to(device, dtype)
        if not (fresh.is_cuda and torch.cuda.is_current_stream_capturing()):  # else it has no numbers yet
            self._ready = counts, counts._version, fresh
        return fresh

    def _known_counts(self) -> Tensor:
        counts = self._buffers["class_counts"]
        assert counts is not None
        return self._last_known["class_counts"] if counts.is_meta else counts

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        before = {name: fact for name in self.facts if (fact := self._buffers.get(name)) is not None}
        super()._apply(fn, recurse)
        self._last_known |= {name: fact for name, fact in before.items() if not fact.is_meta}
        for name, fact in before.items():
            after = self._buffers[name]
            if after is not None and after is not fact and not after.is_meta:  # it may be cast, or without numbers
                self._buffers[name] = self._last_known[name].to(after.device)
        return self
