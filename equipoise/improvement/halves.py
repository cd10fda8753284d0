"""The two halves of held-out data: on one corrections are chosen, on the other they are judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from ..core import EquipoiseError
from ..data import split_by_class


def halves(labels: Tensor, num_classes: int, seed: int) -> tuple[Tensor, Tensor]:
    """Rows to choose on and rows to judge on, in rising order: half of each class, drawn with `seed`.

    The only sample of a class is chosen on.
    """
    judged, chosen = split_by_class(labels.numpy(), num_classes, 0.5, seed)
    if not any(map(len, judged)):
        raise EquipoiseError(
            "no class has two held-out samples: corrections are chosen on one half of them and judged on the other"
        )
    return _sorted(chosen), _sorted(judged)


def _sorted(pools: Sequence[np.ndarray]) -> Tensor:
    return torch.from_numpy(np.sort(np.concatenate(pools)))


class Rows:
    """The samples at `rows` of batches that can be run through again and again."""

    def __init__(self, batches: Iterable[Sequence[Tensor]], rows: Tensor, labels: Tensor) -> None:
        self.batches, self.labels = batches, labels
        self.wanted = torch.zeros(len(labels), dtype=torch.bool)
        self.wanted[rows] = True

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        start = 0
        for inputs, target, *_ in self.batches:
            place = slice(start, start + len(target))
            if not torch.equal(target.cpu().long(), self.labels[place]):
                raise EquipoiseError(
                    "the held-out batches come in another order each time; make the DataLoader with shuffle=False"
                )
            keep = self.wanted[place]
            if bool(keep.any()):
                yield inputs[keep.to(inputs.device)], target[keep.to(target.device)]
            start += len(target)


def again_and_again(batches: Iterable[Sequence[Tensor]]) -> Iterable[Sequence[Tensor]]:
    """Batches that can be run through more than once; those of a generator are kept in memory."""
    return list(batches) if iter(batches) is batches else batches
