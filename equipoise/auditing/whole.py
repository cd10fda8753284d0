"""`audit`: what is in a folder of images, before anything is trained on it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ..core import known
from ..core.extras import require
from ..core.progress import Progress, silent
from .duplicates import Cluster, clusters_of
from .features import SMALL_PIXELS, features_of
from .findings import Facts
from .labels import FEWEST, Judgement, judge, pixel_features
from .listing import NO_CLASS, Listing, list_images
from .look import Seen, look_at
from .names import propose
from .result import Audit

FEATURES = ("auto", "pixels", "none")


def audit(
    path: Path | str,
    *,
    group: str | None = None,
    features: str = "auto",
    device: torch.device | str | None = None,
    seconds: float | None = None,
    progress: Progress = silent,
) -> Audit:
    """Look at every image of a folder: what cannot be read, what is there twice, which labels may be wrong.

    Args:
        path: a folder with one folder a class, perhaps inside `train`, `val` and `test`; or a CSV or Parquet file with
            columns for path and label, and perhaps group and split. Nothing outside the folder is read.
        group: a regular expression on paths that tells which images belong together, as `folder` tasks take it.
        features: what labels are judged by: "auto" takes a pretrained network where one is installed, and small pixels
            otherwise; "pixels" is quick; "none" leaves labels alone.
        device: where images are compared and described; by default a GPU if there is one.
        seconds: what a pretrained network may take to describe the images; small pixels do where that is too little.
        progress: is told what is done, how many and of how many.

    Nothing that is wrong with an image stops the audit.
    """
    require("an audit", "PIL", "scipy", "jinja2")
    known("features", features, FEATURES)
    where = torch.device(device if device is not None else "cuda" if torch.cuda.is_available() else "cpu")
    listing = list_images(Path(path), group)
    seen, views = look_at([item.path for item in listing.items], progress)
    clusters = clusters_of(seen, views, where, progress)
    readable = np.array([i for i, each in enumerate(seen) if not each.problem], np.int64)
    proposal = None
    if group is None and not any(item.group for item in listing.items):
        items = [listing.items[i] for i in readable]
        proposal = propose(items, views[readable], _renumbered(clusters, readable))
    judgement, by = _judged(listing, seen, views, clusters, features, where, seconds, progress)
    return Audit(Facts(listing, seen, clusters, judgement, proposal), by)


def _renumbered(clusters: list[Cluster], rows: NDArray[np.int64]) -> list[Cluster]:
    """The same clusters as indices into `rows`."""
    return [Cluster(tuple(np.searchsorted(rows, each.members).tolist()), each.exact) for each in clusters]


def _judged(
    listing: Listing,
    seen: list[Seen],
    views: NDArray[np.uint8],
    clusters: list[Cluster],
    features: str,
    device: torch.device,
    seconds: float | None,
    progress: Progress,
) -> tuple[Judgement | None, str]:
    """Labels that look wrong, and what they were judged by, or why they were not."""
    if features == "none":
        return None, "that was not asked for"
    labels = np.array([item.label for item in listing.items], np.int64)
    rows = np.array([i for i, each in enumerate(seen) if not each.problem and labels[i] != NO_CLASS], np.int64)
    if (np.bincount(labels[rows], minlength=1) >= FEWEST).sum() < 2:
        return None, f"fewer than two classes have {FEWEST} images"
    small = views[rows]
    if features == "pixels":
        x, by = pixel_features(small), SMALL_PIXELS
    else:
        paths, digests = [listing.items[i].path for i in rows], [seen[i].digest for i in rows]
        x, by = features_of(paths, digests, small, device, progress, seconds)
    together = np.arange(len(labels))
    for cluster in clusters:
        together[list(cluster.members)] = cluster.members[0]
    found = judge(x, torch.from_numpy(labels[rows]), len(listing.class_names), together[rows])
    return found.of_rows(rows), by
