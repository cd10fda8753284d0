"""Images that are in a folder more than once: the same bytes, or the same picture resized, re-encoded or brightened.

Small views are compared after their brightness and contrast are taken away. Every pair is looked at: 63 low frequencies
of each view are a vector of length 1, so that a matrix product gives all likenesses at once. What is alike there is
compared pixel by pixel. From the vectors the mean of all images is taken away first: where all images resemble each
other, as X-rays do, what counts is how they differ from that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from ..core.progress import Progress
from .look import SIDE, Seen

FREQUENCIES = 8
ALIKE_VECTORS = 0.95  # cosine; a first choice, of which little is lost
ALIKE_VIEWS = 0.99  # correlation of all pixels; copies by JPEG at quality 70 are above 0.996
ALIKE_BEYOND_MEAN = 0.97  # the same after the mean image is taken away
SAME_SHAPE = 0.06  # of the logarithm of width over height
FLAT = 3.0  # levels: of views with less contrast than this nothing can be said
FEW = 50  # images whose mean says nothing
BLOCK = 2048  # of so many images all pairs are looked at together: at most 4 million, 200 MB
AT_ONCE = 4_000  # pairs whose pixels are compared at a time: 200 MB


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
    pixels, contrast = _standardised(views, device)
    vectors, beyond = _low_frequencies(views, device), _mean(pixels)
    vectors = torch.nn.functional.normalize(vectors - _mean(vectors), dim=1)
    vectors[contrast < FLAT] = 0  # like nothing
    shapes = shapes.to(device)
    joined = Joined(len(vectors), device)
    for start in range(0, len(vectors), BLOCK):
        for other in range(start, len(vectors), BLOCK):
            likeness = vectors[start : start + BLOCK] @ vectors[other : other + BLOCK].T
            close = (likeness >= ALIKE_VECTORS).nonzero() + likeness.new_tensor([start, other], dtype=torch.int64)
            close = joined.unknown(close[close[:, 0] < close[:, 1]])
            for part in close.split(AT_ONCE):
                joined.add(_verified(joined.unknown(part), pixels, beyond, shapes))
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


def _verified(pairs: Tensor, pixels: Tensor, mean: Tensor, shapes: Tensor) -> Tensor:
    """The pairs that are alike pixel by pixel and of one shape."""
    a, b = pixels[pairs[:, 0]].float(), pixels[pairs[:, 1]].float()
    alike = (a * b).sum(1) >= ALIKE_VIEWS
    alike &= torch.cosine_similarity(a - mean, b - mean) >= ALIKE_BEYOND_MEAN
    alike &= (shapes[pairs[:, 0]] - shapes[pairs[:, 1]]).abs() <= SAME_SHAPE
    return pairs[alike]


def _standardised(views: NDArray[np.uint8], device: torch.device) -> tuple[Tensor, Tensor]:
    """(N, pixels) in half precision, each less its mean and of length 1, and the contrast (N,) that they had."""
    number, pixels = len(views), views[0].size
    out = torch.empty(number, pixels, dtype=torch.float16, device=device)
    length = torch.empty(number, device=device)
    for start in range(0, number, BLOCK):
        part = torch.from_numpy(views[start : start + BLOCK]).to(device).flatten(1).float()
        part -= part.mean(1, keepdim=True)
        length[start : start + BLOCK] = part.norm(dim=1)
        out[start : start + BLOCK] = torch.nn.functional.normalize(part, dim=1).half()
    return out, length / pixels**0.5


def _low_frequencies(views: NDArray[np.uint8], device: torch.device) -> Tensor:
    """The first 8 × 8 cosine waves of each view's brightness, without the constant one; of length 1."""
    place, wave = np.arange(SIDE), np.arange(FREQUENCIES)[:, None]
    waves = torch.tensor(np.cos(np.pi * wave * (place + 0.5) / SIDE), dtype=torch.float32, device=device)
    out = torch.empty(len(views), FREQUENCIES**2 - 1, device=device)
    for start in range(0, len(views), BLOCK):
        grey = torch.from_numpy(views[start : start + BLOCK]).to(device).float().mean(3)
        out[start : start + BLOCK] = (waves @ grey @ waves.T).flatten(1)[:, 1:]
    return torch.nn.functional.normalize(out, dim=1)


def _mean(vectors: Tensor) -> Tensor:
    """The mean over images, summed in float32; 0 of a few, where it would say nothing."""
    if len(vectors) < FEW:
        return torch.zeros(vectors.shape[1], device=vectors.device)
    return torch.stack([part.float().sum(0) for part in vectors.split(BLOCK)]).sum(0) / len(vectors)


def _shapes(found: list[Seen]) -> Tensor:
    return torch.tensor([float(np.log(seen.width / seen.height)) for seen in found])


def components(number: int, pairs: Tensor) -> NDArray[np.int64]:
    """The number of the set that each of so many things is in, where pairs join them.

    >>> components(4, torch.tensor([[0, 2], [2, 3]])).tolist()
    [0, 1, 0, 0]
    """
    i, j = pairs.numpy().T
    graph = coo_array((np.ones(len(pairs), np.int8), (i, j)), shape=(number, number))
    return connected_components(graph, directed=False)[1].astype(np.int64)
