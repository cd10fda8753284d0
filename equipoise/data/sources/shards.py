"""Images in shards: tar files as WebDataset has them, with an index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ...core import checks, register
from ...core.escaping import visible
from ..content import content_of
from ..decode import DataError
from ..frame import Frame
from ..shards.images import ShardImages
from ..shards.index import ShardIndex, read_index
from ..task import Split
from ._base import Source
from .folder import check_path, held_out_of_train, located


@register("shards", kind="task", companions={"augment": "crop_flip"})
def shards(
    path: str,
    size: int = 64,
    resize: int | None = None,
    keep: int | None = None,
    stream: bool = True,
    root: str | Path | None = None,
) -> Source:
    """Images in tar files as WebDataset has them, with the index that ``equipoise shards`` makes; for large sets.

    Class sizes, splits and samplers know the index alone. Each image is read by itself, from its place in a tar file,
    and decoded whenever it is needed, so that memory stays bounded and nothing is copied. With ``stream=False`` images
    are decoded once, into a file that all processes share, as those of a ``folder`` are: faster from the second epoch
    on, where the disk has room for pixels.

    While images are streamed, an epoch visits one shard after the other, in random order, mixed over a window of 4,096
    images; those that a sampler repeats come at random places. The mean and standard deviation that images are
    normalised by are those of 4,096 training images.

    `size`, `resize` and `keep` are those of ``folder``, and images are read by the same rules. Shards with `val` or
    `test` as a word of their name are those parts. Without one for the test, 20 % of each class, drawn with a fixed
    seed, are the test set.

    Differs from the paper: nothing known.

    Reference: Aizman, Maltby, Breuel. High Performance I/O For Large Scale Deep Learning. IEEE Big Data 2019.
    """
    frame = Frame(size, resize, keep)
    checks.truth("stream", stream)
    check_path(path)
    index = read_index(located(Path(path).expanduser(), root, "shards"))
    if "train" not in index.parts:
        raise DataError(f"{visible(index.folder)} has no shards to train on, only for {' and '.join(index.parts)}")
    parts = {part: _part(index, part, frame, stream) for part in index.parts}
    if "test" not in parts:
        rest, held_out = held_out_of_train(parts["train"].labels.numpy(), len(index.class_names))
        parts["train"], parts["test"] = _chosen(parts["train"], rest), _chosen(parts["train"], held_out)
    layout = [f"{shard.name} {len(shard.images)}" for shard in index.shards]  # decides in which order images come
    content = content_of([*index.class_names, *layout], [_told(parts.get(part)) for part in ("train", "valid", "test")])
    return Source(parts["train"], parts["test"], index.class_names, parts.get("valid"), content)


def _part(index: ShardIndex, part: str, frame: Frame, stream: bool) -> Split:
    of_part = [shard for shard in index.shards if shard.part == part]
    labels = np.concatenate([shard.labels for shard in of_part])
    return Split(ShardImages(index.folder, of_part, frame, stream), torch.from_numpy(labels))


def _chosen(split: Split, pools: list[NDArray[np.int64]]) -> Split:
    return split.take(torch.from_numpy(np.sort(np.concatenate(pools))))


def _told(split: Split | None) -> tuple[list[int], bytes]:
    """Labels and digests, as a set is known by."""
    if split is None:
        return [], b""
    assert isinstance(split.images, ShardImages)
    return split.labels.tolist(), split.images.digest_bytes
