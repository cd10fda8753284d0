"""Images that are in a folder more than once: the same bytes, or the same picture resized, re-encoded or brightened.

Small views are compared after their brightness and contrast are taken away. Every pair is looked at: 63 low frequencies
of each view are a vector of length 1, so that a matrix product gives all likenesses at once. What is alike there is
compared once more, in 8 × 8 places and pixel by pixel: JPEG spoils what is fine and leaves what is coarse, so the
coarse must be very much alike and the fine only rather. The mean of all images is taken away first: where all images
resemble each other, as X-rays do, what counts is how they differ from that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch.nn.functional import avg_pool2d, normalize

from ..core.progress import Progress
from .look import SIDE, Seen

FREQUENCIES = 8
PLACES = 8  # coarse views are 8 × 8
# cosines, chosen on CIFAR-10: docs/results/own_images.md
ALIKE_VECTORS = 0.97
ALIKE_COARSE = 0.98
ALIKE_FINE = 0.95
SAME_SHAPE = 0.06  # of the logarithm of width over height
FLAT = 3.0  # levels: of views with less contrast than this nothing can be said
FEW = 50  # images whose mean says nothing
BLOCK = 2048  # of so many images all pairs are looked at together: at most 4 million, 200 MB
AT_ONCE = 2_000  # pairs whose pixels are compared at a time: 100 MB


@dataclass(frozen=True)
class Cluster:
    """Images (indices, in order) that are the same; `exact` where all their bytes are."""

    members: tuple[int, ...]
    exact: bool


def clusters_of(found: list[Seen], views: NDArray[np.uint8], device: torch.device, progress: Progress) -> list[Cluster]:
    """All sets of two or more images that are the same or nearly so."""
    by_content: list[bytes | None] = [None if seen.problem else seen.digest for seen in found]
    first = {digest: i for i, digest in reversed([*enumerate(by_content)]) if digest}
    rows = np.array(sorted(first.values()), np.int64)  # one of each content
    pairs = near_pairs(views[rows], _shapes([found[i] for i in rows]), device, progress)
    near = components(len(rows), pairs)
    of_content = {by_content[row]: int(group) for row, group in zip(rows, near, strict=True)}
    members: dict[int, list[int]] = {}
    for i, digest in enumerate(by_content):
        if digest is not None:
            members.setdefault(of_content[digest], []).append(i)
    several = (tuple(each) for each in members.values() if len(each) > 1)
    return [Cluster(each, len({by_content[i] for i in each}) == 1) for each in several]


def near_pairs(views: NDArray[np.uint8], shapes: Tensor, device: torch.device, progress: Progress) -> Tensor:
    """Pairs (P, 2) of indices of views that show the same. Of many that are all alike, as many as join them."""
    if len(views) < 2:
        return torch.empty(0, 2, dtype=torch.int64)
    small = torch.from_numpy(views).to(device)
    means = _mean(_coarse, small), _mean(_fine, small)
    contrast = torch.cat([part.flatten(1).float().std(1) for part in small.split(BLOCK)])
    vectors = torch.cat([_low_frequencies(part) for part in small.split(BLOCK)]) - _mean(_low_frequencies, small)
    vectors = normalize(vectors, dim=1)
    vectors[contrast < FLAT] = 0  # like nothing
    shapes = shapes.to(device)
    joined = Joined(len(vectors), device)
    for start in range(0, len(vectors), BLOCK):
        for other in range(start, len(vectors), BLOCK):
            likeness = vectors[start : start + BLOCK] @ vectors[other : other + BLOCK].T
            close = (likeness >= ALIKE_VECTORS).nonzero() + likeness.new_tensor([start, other], dtype=torch.int64)
            close = joined.unknown(close[close[:, 0] < close[:, 1]])
            for part in close.split(AT_ONCE):
                joined.add(_verified(joined.unknown(part), small, means, shapes))
        progress("comparing images", min(start + BLOCK, len(vectors)), len(vectors))
    return joined.pairs


class Joined:
    """Pairs that were found, and which images they join: of those no further pair needs to be looked at.

    So a thousand frames of one film cost a few thousand comparisons, not half a million.
    """

    def __init__(self, number: int, device: torch.device) -> None:
        self.pairs = torch.empty(0, 2, dtype=torch.int64)
        self.groups = torch.arange(number, device=device)

    def unknown(self, pairs: Tensor) -> Tensor:
        """Those of two images that are not joined yet."""
        return pairs[self.groups[pairs[:, 0]] != self.groups[pairs[:, 1]]]

    def add(self, pairs: Tensor) -> None:
        if len(pairs):
            self.pairs = torch.cat([self.pairs, pairs.cpu()])
            groups = torch.from_numpy(components(len(self.groups), self.pairs))
            self.groups = groups.to(self.groups.device)


def _verified(pairs: Tensor, views: Tensor, means: tuple[Tensor, Tensor], shapes: Tensor) -> Tensor:
    """The pairs that are alike in coarse and in fine, and of one shape."""
    i, j = pairs.T
    alike = (shapes[i] - shapes[j]).abs() <= SAME_SHAPE
    for described, mean, least in ((_coarse, means[0], ALIKE_COARSE), (_fine, means[1], ALIKE_FINE)):
        a, b = described(views[i]) - mean, described(views[j]) - mean
        alike &= torch.cosine_similarity(a, b) >= least
    return pairs[alike]


def _fine(views: Tensor) -> Tensor:
    """All pixels (N, side · side · 3) of views, each view less its mean and of length 1."""
    pixels = views.flatten(1).float()
    return normalize(pixels - pixels.mean(1, keepdim=True), dim=1)


def _coarse(views: Tensor) -> Tensor:
    """The same of 8 × 8 places."""
    return _fine(avg_pool2d(views.permute(0, 3, 1, 2).float(), SIDE // PLACES))


def _low_frequencies(views: Tensor) -> Tensor:
    """The first 8 × 8 cosine waves (N, 63) of each view's brightness, without the constant one; of length 1."""
    place, wave = np.arange(SIDE), np.arange(FREQUENCIES)[:, None]
    waves = torch.tensor(np.cos(np.pi * wave * (place + 0.5) / SIDE), dtype=torch.float32, device=views.device)
    return normalize((waves @ views.float().mean(3) @ waves.T).flatten(1)[:, 1:], dim=1)


def _mean(described: Callable[[Tensor], Tensor], views: Tensor) -> Tensor:
    """The mean over images; 0 of a few, where it would say nothing."""
    total = torch.stack([described(part).sum(0) for part in views.split(BLOCK)]).sum(0)
    return total / len(views) if len(views) >= FEW else torch.zeros_like(total)


def _shapes(found: list[Seen]) -> Tensor:
    return torch.tensor([float(np.log(seen.width / seen.height)) for seen in found], dtype=torch.float32)


def components(number: int, pairs: Tensor) -> NDArray[np.int64]:
    """The number of the set that each of so many things is in, where pairs join them.

    >>> components(4, torch.tensor([[0, 2], [2, 3]])).tolist()
    [0, 1, 0, 0]
    """
    i, j = pairs.numpy().T
    graph = coo_array((np.ones(len(pairs), np.int8), (i, j)), shape=(number, number))
    return connected_components(graph, directed=False)[1].astype(np.int64)
