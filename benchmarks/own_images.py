"""A user's folder from the first look to a model in use, and whether what was promised came true.

    EQUIPOISE_DATA=… python benchmarks/own_images.py make FOLDER [--images 5000]     # needs CIFAR-10
    equipoise compare FOLDER/photos --minutes 10 --out FOLDER/runs
    python benchmarks/own_images.py check FOLDER

`make` writes real photographs of CIFAR-10, long-tailed (50 : 1), as PNG and JPEG with groups in their names, and plants
in them 40 broken or odd files, 50 near-duplicates, and 5 % wrong labels. Kept back: photographs drawn at random with
the labels of CIFAR (`kept/random`). `check` compares what the model's card promises with what `equipoise predict` gives
on them, and counts how many of the planted files the audit found.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance

RATIO, WRONG, BROKEN, COPIES, KEPT = 50, 0.05, 40, 50, 1000
SEED = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "check"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=5_000)
    asked = parser.parse_args()
    make(asked.folder, asked.images) if asked.what == "make" else check(asked.folder)


def make(folder: Path, number: int) -> None:
    from equipoise.data import load_task, long_tailed_counts

    rng = np.random.default_rng(SEED)
    share = sum(long_tailed_counts(10, 1000, RATIO)) / 1000
    task = load_task("cifar10", imbalance="long_tailed", ratio=RATIO, valid=0, n_max=round(number / share))
    names, photos = task.class_names, folder / "photos"
    labels = task.train.labels.tolist()
    wrong = set(rng.choice(len(labels), round(WRONG * len(labels)), replace=False).tolist())
    planted: dict[str, list[str]] = {"wrong": [], "copies": [], "broken": []}
    written: list[Path] = []
    for i, (pixels, label) in enumerate(zip(task.train.images, labels, strict=True)):
        shown = (label + int(rng.integers(1, 10))) % 10 if i in wrong else label
        path = photos / names[shown] / f"{i // 3:05}_{i % 3:02}.{'jpg' if i % 2 else 'png'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.permute(1, 2, 0).numpy()).save(path, **({"quality": 92} if i % 2 else {}))
        written.append(path)
        if i in wrong:
            planted["wrong"].append(str(path.relative_to(photos)))
    for n, i in enumerate(rng.choice(len(written), COPIES, replace=False)):
        path = written[i].with_name(f"copy{n:03}.jpg")
        changed = ImageEnhance.Brightness(Image.open(written[i]).convert("RGB")).enhance(float(rng.uniform(0.92, 1.08)))
        changed.resize((36, 36)).save(path, quality=75)
        planted["copies"].append(str(path.relative_to(photos)))
    for n, i in enumerate(rng.choice(len(written), BROKEN, replace=False)):
        path, content = written[i].with_name(f"broken{n:02}.jpg"), written[i].read_bytes()
        damage = (
            content[: len(content) // 3],
            b"",
            b"GIF89a" + content[:20],
            bytes(rng.integers(0, 256, 300, np.uint8)),
        )
        path.write_bytes(damage[n % len(damage)])
        planted["broken"].append(str(path.relative_to(photos)))
    kept = rng.choice(len(task.test), KEPT, replace=False)
    for i in kept.tolist():
        path = folder / "kept" / "random" / names[int(task.test.labels[i])] / f"{i:05}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(task.test.images[i].permute(1, 2, 0).numpy()).save(path)
    (folder / "planted.json").write_text(json.dumps(planted, indent=1))
    print(f"{len(written):,} photographs of {len(names)} classes, {len(wrong)} with wrong labels, in {photos}")


def check(folder: Path) -> None:
    planted = json.loads((folder / "planted.json").read_text())
    audit = json.loads((folder / "runs" / "audit" / "audit.json").read_text())
    told = {name for finding in audit["findings"] for case in finding["cases"] for name in case["files"]}
    kinds = {finding["kind"]: {n for case in finding["cases"] for n in case["files"]} for finding in audit["findings"]}
    for what, names in planted.items():
        print(f"{what:<8} {len(told & set(names)):>4} of {len(names)} are in the audit")
    print("kinds of findings: " + ", ".join(f"{kind} ({len(names)} files)" for kind, names in kinds.items()))
    model = folder / "runs" / "model"
    for score in json.loads((model / "model.json").read_text())["description"].get("scores", []):
        print(f"promised: {score}")
    out = folder / "predicted.csv"
    command = [sys.executable, "-m", "equipoise", "predict", model, folder / "kept" / "random", "--out", out]
    subprocess.run([str(part) for part in command], check=True)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    right: dict[str, list[bool]] = {}
    for row in rows:
        path = Path(row.get("path") or row["file"])
        right.setdefault(path.parent.name, []).append(row.get("prediction", row.get("class")) == path.parent.name)
    recalls = np.array([np.mean(values) for values in right.values()])
    spread = np.sqrt(sum(np.var(v) / len(v) for v in right.values())) / len(recalls)
    print(f"kept back: {len(rows)} images, balanced accuracy {100 * recalls.mean():.1f} ± {196 * spread:.1f} %")


if __name__ == "__main__":
    main()
