"""Images per second out of shards: tar files read from end to end, and class-aware sampling over their index.

python benchmarks/shards.py                             # 1,500 JPEGs, 7 rounds
python benchmarks/shards.py --images 400 --rounds 9
python benchmarks/shards.py --undecoded                 # reading alone

All contenders decode the same JPEGs in one process, to squares of 224 pixels as uint8. "Plain streaming" goes through
each tar file from its first byte to its last with Python's tarfile, as WebDataset does, shards in random order, and
needs no index; where the package webdataset is installed it is a contender too. The others read by index: every image
once, or as a class-balanced sampler wants it, shard by shard or in the sampler's own order.

Contenders take turns, and each round compares them with plain streaming in the same round. Each pass is done twice:
with shards that the system has forgotten ("cold": it is asked to drop them from its cache), and with those that it has
just read ("warm"). Processor time says what a pass costs, the clock on the wall also what it waits for.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import statistics
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_sample_images

from equipoise.data import ShardDataset, long_tailed_counts, write_shards
from equipoise.data.decode import decoded
from equipoise.imbalance import ClassBalancedSampler, Sampler, ShardSampler, UniformSampler

SIZE, CLASSES, RATIO, SHARD_BYTES = 224, 20, 100, 2 * 2**20
PLAIN = "plain streaming"

try:
    import webdataset
except ImportError:
    webdataset = None


def main() -> None:
    parser = argparse.ArgumentParser(description="Class-aware sampling over shards against plain streaming.")
    parser.add_argument("--images", type=int, default=1_500)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--undecoded", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:  # on a disk: /tmp may be memory
        make_photos(Path(scratch, "photos"), given.images)
        folder = write_shards(Path(scratch, "photos"), Path(scratch, "shards"), shard_bytes=SHARD_BYTES).parent
        data = ShardDataset(folder, size=SIZE)
        look = as_it_is if given.undecoded else lambda content: data.images.view(decoded(content, data.images.frame))
        contenders = contenders_for(data, sorted(folder.glob("*.tar")), look)
        tell_setting(data, given.rounds)
        rows = {(name, heat): [] for heat in ("cold", "warm") for name in contenders}
        for number in range(given.rounds):
            for name, one_pass in contenders.items():
                forget(folder)
                for heat in ("cold", "warm"):
                    rows[name, heat].append(measured(one_pass, number))
    for heat in ("cold", "warm"):
        show(heat, {name: rows[name, heat] for name in contenders})


def make_photos(folder: Path, count: int) -> None:
    """JPEGs of random boxes of two photographs, 250 to 400 × 300 to 500 pixels, of long-tailed classes."""
    rng, photos = np.random.default_rng(0), load_sample_images().images
    sizes = np.array(long_tailed_counts(CLASSES, 10_000, RATIO)) * count
    for label, size in enumerate(np.maximum(1, sizes // sum(long_tailed_counts(CLASSES, 10_000, RATIO)))):
        place = folder / f"class_{label:02}"
        place.mkdir(parents=True)
        for i in range(size):
            photo = photos[i % 2]
            h, w = int(rng.integers(250, 401)), int(rng.integers(300, 501))
            top, left = rng.integers(0, photo.shape[0] - h + 1), rng.integers(0, photo.shape[1] - w + 1)
            Image.fromarray(photo[top : top + h, left : left + w]).save(place / f"{i}.jpg", quality=90)


Pass = Callable[[int], Iterator[object]]
Look = Callable[[bytes], object]


def as_it_is(content: bytes) -> bytes:
    return content


def contenders_for(data: ShardDataset, tars: list[Path], look: Look) -> dict[str, Pass]:
    once, balanced = UniformSampler(data.labels), ClassBalancedSampler(data.labels)
    samplers = {
        "index, every image once, shard by shard": ShardSampler(once, data.shards, window=256),
        "index, class-balanced, shard by shard": ShardSampler(balanced, data.shards, window=256),
        "index, class-balanced, in the sampler's order": balanced,
    }
    found: dict[str, Pass] = {PLAIN: lambda epoch: plain(tars, epoch, look)}
    found |= {name: partial(by_index, data, sampler, look) for name, sampler in samplers.items()}
    if webdataset is not None:
        found["webdataset"] = lambda epoch: through_webdataset(tars, look)
    return found


def plain(tars: list[Path], epoch: int, look: Look) -> Iterator[object]:
    for path in random.Random(epoch).sample(tars, len(tars)):
        with tarfile.open(path, "r|") as tar:
            image = None
            for member in tar:
                content = tar.extractfile(member).read()
                if member.name.endswith(".cls"):
                    yield image, int(content)
                else:
                    image = look(content)


def through_webdataset(tars: list[Path], look: Look) -> Iterator[object]:
    samples = webdataset.WebDataset([str(path) for path in tars], shardshuffle=100).to_tuple("jpg", "cls")
    return ((look(image), int(label)) for image, label in samples)


def by_index(data: ShardDataset, sampler: Sampler, look: Look, epoch: int) -> Iterator[object]:
    sampler.set_epoch(epoch)
    return ((look(data.images.content(row)), int(data.labels[row])) for row in sampler)


def forget(folder: Path) -> None:
    """Ask the system to drop the shards from its cache."""
    for path in folder.glob("*.tar"):
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def measured(one_pass: Pass, epoch: int) -> tuple[float, float]:
    """Images per second, of the clock on the wall and of processor time."""
    wall, processor = time.perf_counter(), time.process_time()
    count = sum(1 for _ in one_pass(epoch))
    return count / (time.perf_counter() - wall), count / (time.process_time() - processor)


def tell_setting(data: ShardDataset, rounds: int) -> None:
    counts, nbytes = data.class_counts, int(data.images.spans[:, 1].sum())
    print(
        f"{os.cpu_count()} cores of {platform.machine()}, load {os.getloadavg()[0]:.0f}, torch {torch.__version__}; "
        f"{len(data)} images of {CLASSES} classes ({counts.min()} to {counts.max()}), {nbytes / 2**20:.0f} MB in "
        f"{len(data.images.shards)} shards; {rounds} rounds"
    )


def show(heat: str, rows: dict[str, list[tuple[float, float]]]) -> None:
    print(f"\n{heat:46}{'images/s':>10}{'of plain: wall':>22}{'processor':>22}")
    for name, passes in rows.items():
        ratios = [
            sorted(own[clock] / other[clock] for own, other in zip(passes, rows[PLAIN], strict=True))
            for clock in (0, 1)
        ]
        told = "".join(f"{statistics.median(r):>8.2f} ({r[0]:.2f} to {r[-1]:.2f})" for r in ratios)
        print(f"{name:46}{statistics.median(wall for wall, _ in passes):>10,.0f}{told}")


if __name__ == "__main__":
    main()
