"""A user's folder from the first look to a model in use, and whether what was promised came true.

    EQUIPOISE_DATA=… python benchmarks/own_images.py make FOLDER [--images 5000] [--seed 0]     # needs CIFAR-10
    equipoise compare FOLDER/photos --minutes 10 --out FOLDER/runs --group '(.+)_[0-9]+'
    python benchmarks/own_images.py check FOLDER

`make` writes real photographs of CIFAR-10, long-tailed (50 : 1), as PNG and JPEG. Each is a group of one to three
frames, `00012_00.png`, `00012_01.jpg`, …, as a shaking camera takes them. Planted are 40 broken files, 50
near-duplicates, and 5 % wrong labels, which all frames of a group share. Kept back are other photographs with the
labels of CIFAR: one frame of each (`kept/random`), and groups of three frames (`kept/groups`).

`check` counts how many of the planted files the audit found, and compares what the model's card promises with what
`equipoise predict` gives on the photographs that were kept back.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageEnhance

from equipoise.deploy import Promise

RATIO, WRONG, BROKEN, COPIES = 50, 0.05, 40, 50
KEPT, KEPT_GROUPS, FRAMES = 1000, 400, 3
SHAKE = 2  # pixels that a frame is moved at most
DOUBLES = ("duplicates", "two_classes", "two_parts")  # kinds of findings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "check"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    make(asked.folder, asked.images, asked.seed) if asked.what == "make" else check(asked.folder)


def make(folder: Path, number: int, seed: int) -> None:
    from equipoise.data import load_task, long_tailed_counts

    rng = np.random.default_rng(seed)
    frames = (1 + FRAMES) / 2  # of a group, on average
    share = sum(long_tailed_counts(10, 1000, RATIO)) / 1000
    task = load_task("cifar10", imbalance="long_tailed", ratio=RATIO, valid=0, n_max=round(number / share / frames))
    names, photos, labels = task.class_names, folder / "photos", task.train.labels.tolist()
    wrong = set(rng.choice(len(labels), round(WRONG * len(labels)), replace=False).tolist())
    planted: dict[str, list[Path]] = {"wrong": [], "copies": [], "broken": []}
    written: list[Path] = []
    for i, (pixels, label) in enumerate(zip(task.train.images, labels, strict=True)):
        shown = (label + int(rng.integers(1, 10))) % 10 if i in wrong else label
        group = write_group(photos / names[shown], i, pixels.permute(1, 2, 0).numpy(), 1 + i % FRAMES, rng)
        written += group
        planted["wrong"] += group if i in wrong else []
    planted["copies"] = [copied(written[i], n, rng) for n, i in enumerate(rng.choice(len(written), COPIES, False))]
    planted["broken"] = [damaged(written[i], n, rng) for n, i in enumerate(rng.choice(len(written), BROKEN, False))]
    kept = rng.choice(len(task.test), KEPT + KEPT_GROUPS, replace=False)
    for n, i in enumerate(kept.tolist()):
        part, size = ("random", 1) if n < KEPT else ("groups", FRAMES)
        place = folder / "kept" / part / names[int(task.test.labels[i])]
        write_group(place, i, task.test.images[i].permute(1, 2, 0).numpy(), size, rng)
    lists = {what: [str(path.relative_to(photos)) for path in paths] for what, paths in planted.items()}
    (folder / "planted.json").write_text(json.dumps(lists, indent=1))
    print(f"{len(written):,} images of {len(labels):,} photographs and {len(names)} classes in {photos}; ", end="")
    print(f"{len(planted['wrong'])} images have wrong labels")


def write_group(folder: Path, group: int, photo: NDArray[np.uint8], frames: int, rng: Any) -> list[Path]:
    """So many frames of a photograph (32, 32, 3), each of another place and brightness, by turns PNG and JPEG."""
    folder.mkdir(parents=True, exist_ok=True)
    paths, side = [], len(photo) - 2 * SHAKE
    for n in range(frames):
        left, top = rng.integers(0, 2 * SHAKE + 1, 2).tolist()
        frame = Image.fromarray(photo).crop((left, top, left + side, top + side)).resize((len(photo), len(photo)))
        frame = ImageEnhance.Brightness(frame).enhance(float(rng.uniform(0.85, 1.15)))
        jpeg = (group + n) % 2
        paths.append(folder / f"{group:05}_{n:02}.{'jpg' if jpeg else 'png'}")
        frame.save(paths[-1], **({"quality": 92} if jpeg else {}))
    return paths


def copied(path: Path, number: int, rng: Any) -> Path:
    """A near-duplicate: brighter or darker, resized, and encoded anew."""
    copy = path.with_name(f"copy{number:03}.jpg")
    changed = ImageEnhance.Brightness(Image.open(path).convert("RGB")).enhance(float(rng.uniform(0.92, 1.08)))
    changed.resize((36, 36)).save(copy, quality=75)
    return copy


def damaged(path: Path, number: int, rng: Any) -> Path:
    """A file that is cut, empty, of a wrong kind or of noise."""
    broken, content = path.with_name(f"broken{number:02}.jpg"), path.read_bytes()
    noise = bytes(rng.integers(0, 256, 300, np.uint8))
    damage = (content[: len(content) // 3], b"", b"GIF89a" + content[:20], noise)
    broken.write_bytes(damage[number % len(damage)])
    return broken


def check(folder: Path) -> None:
    for line in (*found_by_audit(folder), *promised(folder)):
        print(line)


def found_by_audit(folder: Path) -> Iterator[str]:
    planted = json.loads((folder / "planted.json").read_text())
    notes = folder / "runs" / "audit"
    findings = json.loads((notes / "audit.json").read_text())["findings"]
    told = {f["kind"]: {name for case in f["cases"] for name in case["files"]} for f in findings}
    with (notes / "leave_out.csv").open(newline="") as file:
        unreadable = {row["path"] for row in csv.DictReader(file)}
    doubles = set().union(*(told.get(kind, set()) for kind in DOUBLES))
    for what, found in (("broken", unreadable), ("copies", doubles), ("wrong", told.get("labels", set()))):
        hits = len(found & set(planted[what]))
        yield f"{what:<7} {hits} of {len(planted[what])} are in the audit, which lists {len(found)} files there"


def promised(folder: Path) -> Iterator[str]:
    model = folder / "runs" / "model"
    promise = Promise.from_dict(json.loads((model / "model.json").read_text())["promise"])
    low, high = 100 * promise.low, 100 * promise.high
    yield str(promise)
    for kept in ("random", "groups"):
        value, spread, images = balanced_accuracy(model, folder / "kept" / kept)
        verdict = "inside" if low <= value <= high else "below" if value < low else "above"
        yield f"kept/{kept}: {images} images give {value:.1f} ± {spread:.1f} %, {verdict} what was promised"


def balanced_accuracy(model: Path, images: Path) -> tuple[float, float, int]:
    """What `equipoise predict` gets right, in per cent, with half of a 95 % interval over groups; and how many images.

    The interval: the share that is right of each group is one observation.
    """
    out = images.parent / f"{images.name}.csv"
    subprocess.run([sys.executable, "-m", "equipoise", "predict", model, images, "--out", out], check=True)
    right: dict[str, dict[str, list[bool]]] = {}
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        path = Path(row["image"])
        groups = right.setdefault(path.parent.name, {})
        groups.setdefault(path.stem.partition("_")[0], []).append(row["prediction"] == path.parent.name)
    shares = [np.array([np.mean(frames) for frames in groups.values()]) for groups in right.values()]
    spread = np.sqrt(sum(each.var(ddof=1) / len(each) for each in shares)) / len(shares)
    return 100 * float(np.mean([each.mean() for each in shares])), 196 * float(spread), len(rows)


if __name__ == "__main__":
    main()
