"""Behind the numbers of docs/your_images.md: how long an audit compares, and how well it finds wrong labels.

python benchmarks/audit.py [images]
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
from sklearn.datasets import load_digits

from equipoise.auditing.duplicates import near_pairs
from equipoise.auditing.labels import judge, pixel_features

DRAWS = 10


def silent(what: str, done: int, total: int) -> None:
    pass


def views_of(images: torch.Tensor) -> np.ndarray:
    """Small views (N, 24, 24, 3) of coarse images (N, c, h, w)."""
    parts = [torch.nn.functional.interpolate(part, (24, 24), mode="bilinear") for part in images.split(4096)]
    return torch.cat(parts).permute(0, 2, 3, 1).expand(-1, -1, -1, 3).to(torch.uint8).contiguous().numpy()


def speed(number: int) -> None:
    rng = np.random.default_rng(0)
    views = views_of(torch.from_numpy(rng.integers(0, 256, (number, 3, 6, 6), np.uint8)).float())
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    began = time.perf_counter()
    near_pairs(views, torch.zeros(number), device, silent)
    compared = time.perf_counter()
    judge(pixel_features(views), torch.from_numpy(rng.integers(0, 100, number)), 100, np.arange(number))
    judged = time.perf_counter()
    where = f"{device}, {torch.get_num_threads()} threads"
    print(f"{number:,} images on {where}: {compared - began:.1f} s to compare all pairs, ", end="")
    print(f"{judged - compared:.1f} s to judge labels of 100 classes")


def wrong_labels() -> None:
    """Digits, 150 to 15 images of a class, of each class 10 % with a label drawn from the others."""
    data = load_digits()
    views = views_of(torch.from_numpy(data.images * 15.9)[:, None].float())
    pairs = near_pairs(views, torch.zeros(len(views)), torch.device("cpu"), silent)
    print(f"{len(views):,} digits: {len(pairs)} pairs are taken for copies")
    features, sizes = pixel_features(views), [round(150 * 10 ** (-c / 9)) for c in range(10)]
    true = np.repeat(np.arange(10), sizes)
    found: dict[str, list[bool]] = {"in the four largest": [], "in the four smallest": [], "right": []}
    for draw in range(DRAWS):
        rng = np.random.default_rng(draw)
        rows = np.concatenate([rng.permutation(np.flatnonzero(data.target == c))[:n] for c, n in enumerate(sizes)])
        given = true.copy()
        for c, n in enumerate(sizes):
            wrong = rng.permutation(np.flatnonzero(true == c))[: max(1, round(n / 10))]
            given[wrong] = (c + rng.integers(1, 10, len(wrong))) % 10
        suspects = judge(features[rows], torch.from_numpy(given), 10, np.arange(len(rows))).suspects
        doubted = np.isin(np.arange(len(rows)), [s.image for s in suspects])
        found["in the four largest"] += doubted[(true != given) & (true < 4)].tolist()
        found["in the four smallest"] += doubted[(true != given) & (true > 5)].tolist()
        found["right"] += (true != given)[doubted].tolist()
    large, small, right = (f"{100 * np.mean(each):.0f} %" for each in found.values())
    print(f"wrong labels, {DRAWS} draws: {large} are found in the four largest classes, {small} in the four ", end="")
    print(f"smallest; {right} of those doubted are wrong")


if __name__ == "__main__":
    wrong_labels()
    speed(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
