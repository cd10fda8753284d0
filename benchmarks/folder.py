"""Images per second out of a folder of photographs: a usual ImageFolder and DataLoader loop, and the arena of a task.

python benchmarks/folder.py                  # 2,000 JPEGs, on the GPU if there is one
python benchmarks/folder.py --images 400 --device cpu
python benchmarks/folder.py --rounds 5       # so many first passes of each, from nothing; three by default
python benchmarks/folder.py --shared         # in processor time of all processes: for a machine with other work on it

Both give batches of 128 random crops (10 to 100 % of the image, 224 × 224, mirrored), normalised, on the device. The
usual loop decodes each file in each pass, in as many processes as there are cores, with torchvision where it is
installed and else with the same transforms written with Pillow. Ours decodes once: the first pass is `load_task`, which
reads, hashes and decodes every file and writes the arena, and then an epoch; later passes are epochs alone. On a CPU an
epoch of ours has one thread, as in a worker of a study. Contenders take turns; a round is a first pass with new
processes, or a new arena and index, and a later pass. How many times as fast is the median over rounds of what one
round says.

The files are made here of the two photographs that come with scikit-learn: random boxes of them, 250 to 400 pixels high
and 300 to 500 wide, as JPEGs of quality 90.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_sample_images
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from equipoise.data import Task, load_task, normalize
from equipoise.data.augment import ResizedCrop
from equipoise.study.run.child import keep_freed_memory
from equipoise.train.feed import feed_of

SIZE, RESIZE, BATCH, AREA, ASPECT = 224, 256, 128, (0.1, 1.0), (3 / 4, 4 / 3)
MEAN, STD = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])

try:
    import torchvision
except ImportError:
    torchvision = None


def main() -> None:
    parser = argparse.ArgumentParser(description="The arena of a folder of photographs against a usual loader.")
    parser.add_argument("--images", type=int, default=2_000)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shared", action="store_true")
    given = parser.parse_args()
    clock = processor_seconds if given.shared else time.perf_counter
    device = torch.device(given.device)
    torch.set_num_threads(1)
    keep_freed_memory()  # as a study's workers do
    with tempfile.TemporaryDirectory() as scratch:
        photos = Path(scratch, "photos")
        make_photos(photos, given.images)
        tell_setting(given.images, device)
        rounds = [one_round(photos, Path(scratch, f"round{i}"), device, clock) for i in range(given.rounds)]
    print(f"{'':22}{'first passes':>20}{'later passes':>20}{'times as fast, first and later':>34}")
    for name in rounds[0]:
        passes = [spread([rates[name][i] for rates in rounds]) for i in (0, 1)]
        times = [statistics.median(rates[name][i] / rates["usual"][i] for rates in rounds) for i in (0, 1)]
        print(f"{name:22}{passes[0]:>20}{passes[1]:>20}{times[0]:>20.2f}{times[1]:>14.2f}")


def one_round(
    photos: Path, scratch: Path, device: torch.device, clock: Callable[[], float]
) -> dict[str, tuple[float, float]]:
    """Images per second of a first and a later pass of each contender, who all begin with nothing."""
    os.environ["XDG_CACHE_HOME"] = str(scratch / "index")  # where hashes of files are remembered
    contenders = {"usual": Usual(photos, device), **ours(photos, scratch / "cache", device)}
    first = {name: measured(contender, device, clock) for name, contender in contenders.items()}
    later = {name: measured(contender, device, clock) for name, contender in contenders.items()}
    shutil.rmtree(scratch)
    return {name: (first[name], later[name]) for name in contenders}


def spread(rates: list[float]) -> str:
    return f"{min(rates):,.0f} to {max(rates):,.0f}"


def make_photos(folder: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for label, photo in enumerate(load_sample_images().images):
            for part in ("train", "test"):
                (folder / part / f"class_{label}").mkdir(parents=True)
            for i in range(count // 2 + 1):  # one of them is the test set
                h, w = int(rng.integers(250, 401)), int(rng.integers(300, 501))
                top, left = rng.integers(0, photo.shape[0] - h + 1), rng.integers(0, photo.shape[1] - w + 1)
                where = folder / ("train" if i else "test") / f"class_{label}" / f"{i}.jpg"
                pool.submit(Image.fromarray(photo[top : top + h, left : left + w]).save, where, quality=90)


def tell_setting(images: int, device: torch.device) -> None:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    by = f"torchvision {torchvision.__version__}" if torchvision else "Pillow"
    cores = f"{os.cpu_count()} cores of {platform.machine()}"
    print(f"{name}, {cores}, torch {torch.__version__}; {images} images; the usual loop with {by}")


def processor_seconds() -> float:
    """Of this process and those that it started."""
    ticks = 0
    for child in multiprocessing.active_children():
        fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])  # in the process itself and in the system
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def measured(one_pass: Callable[[], Iterator[Tensor]], device: torch.device, clock: Callable[[], float]) -> float:
    """Images per second of one pass."""
    began, count = clock(), 0
    for batch in one_pass():
        count += len(batch)
    if device.type == "cuda":
        torch.cuda.synchronize()
    return count / (clock() - began)


# -- the usual way ---------------------------------------------------------------------------------------------------


class Usual:
    def __init__(self, photos: Path, device: torch.device) -> None:
        self.device = device
        data = torchvision_folder(photos / "train") if torchvision else Photos(photos / "train")
        self.loader = DataLoader(
            data,
            batch_size=BATCH,
            shuffle=True,
            drop_last=True,
            num_workers=os.cpu_count() or 1,
            persistent_workers=True,
            pin_memory=device.type == "cuda",
        )

    def __call__(self) -> Iterator[Tensor]:
        for images, _ in self.loader:
            yield images.to(self.device, non_blocking=True)


def torchvision_folder(path: Path) -> Dataset:
    from torchvision import transforms
    from torchvision.datasets import ImageFolder

    steps = [
        transforms.RandomResizedCrop(SIZE, AREA, ASPECT),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
    return ImageFolder(path, transforms.Compose(steps))


class Photos(Dataset):
    """The same without torchvision."""

    def __init__(self, path: Path) -> None:
        self.files = [(file, label) for label, place in enumerate(sorted(path.iterdir())) for file in place.iterdir()]

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        path, label = self.files[i]
        with Image.open(path) as file:
            image = file.convert("RGB")
        top, left, height, width = random_box(image.height, image.width)
        image = image.crop((left, top, left + width, top + height)).resize((SIZE, SIZE), Image.Resampling.BILINEAR)
        if torch.rand(1) < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().float().div(255)
        return (pixels - MEAN[:, None, None]) / STD[:, None, None], label


def random_box(h: int, w: int) -> tuple[int, int, int, int]:
    for _ in range(10):
        area = h * w * float(torch.empty(1).uniform_(*AREA))
        ratio = math.exp(float(torch.empty(1).uniform_(math.log(ASPECT[0]), math.log(ASPECT[1]))))
        height, width = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
        if height <= h and width <= w:
            return int(torch.randint(h - height + 1, (1,))), int(torch.randint(w - width + 1, (1,))), height, width
    side = min(h, w)
    return (h - side) // 2, (w - side) // 2, side, side


# -- ours ------------------------------------------------------------------------------------------------------------


def ours(photos: Path, cache: Path, device: torch.device) -> dict[str, Callable[[], Iterator[Tensor]]]:
    """By where the arena lies; each decodes into an arena of its own."""
    if device.type == "cpu":
        return {"arena, mapped": Ours(photos, cache / "mapped", device, lambda task: task)}
    return {
        "arena on the GPU": Ours(photos, cache / "resident", device, lambda task: task.in_memory()),
        "arena, through loaders": Ours(photos, cache / "streamed", device, lambda task: task),
    }


class Ours:
    def __init__(self, photos: Path, cache: Path, device: torch.device, put: Callable[[Task], Task]) -> None:
        self.name = f"folder(path={str(photos)!r}, size={SIZE}, resize={RESIZE})"
        self.cache, self.device, self.put = cache, device, put
        self.task: Task | None = None
        self.generator = torch.Generator(device).manual_seed(0)

    def __call__(self) -> Iterator[Tensor]:
        if self.task is None:
            self._open()
        order = torch.randperm(len(self.task.train), generator=self.generator, device=self.device)
        self.feed.start_epoch(order, self.generator)
        for place in torch.arange(len(order), device=self.device).split(BATCH):
            if len(place) == BATCH:
                self.feed.advance()
                yield normalize(self.feed(order[place], place), self.mean, self.std)

    def _open(self) -> None:
        self.task = self.put(load_task(self.name, valid=0, cache=self.cache)).to(self.device)
        self.feed = feed_of(self.task.train.images, BATCH, self.device, ResizedCrop(AREA, ASPECT))
        self.mean, self.std = MEAN.to(self.device), STD.to(self.device)


if __name__ == "__main__":
    main()
