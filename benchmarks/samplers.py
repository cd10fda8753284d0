"""Every sampler on 1 to 8 processes for many epochs: one order for all, nothing twice, counts as they should be.

    python benchmarks/samplers.py --epochs 1000

What was found is in docs/results/cluster.md.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

from equipoise import imbalance

LABELS = torch.tensor([0] * 40 + [1] * 13 + [2] * 6 + [3])
N = len(LABELS)
SAMPLERS = {
    "uniform": imbalance.UniformSampler,
    "class_balanced": imbalance.ClassBalancedSampler,
    "target_ratio": imbalance.TargetRatioSampler,
    "progressive": lambda labels, **options: imbalance.ProgressiveSampler(labels, epochs=10, **options),
    "weighted": lambda labels, **options: imbalance.DistributedWeightedSampler.to_ratio(labels, 3.0, **options),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=1000)
    epochs = parser.parse_args().epochs
    for name in SAMPLERS:
        alone = orders(name, 1, epochs)
        same = all((orders(name, size, epochs) == alone).all() for size in range(2, 9))
        classes = np.array([np.bincount(LABELS[order], minlength=4) for order in alone])
        print(
            f"{name}: the same order on 1 to 8 processes: {same}; of each class in an epoch at least "
            f"{classes.min(0).tolist()}, at most {classes.max(0).tolist()}; largest |z| of a sample's count on a "
            f"process {largest_z(alone):.2f}",
            flush=True,
        )


def orders(name: str, size: int, epochs: int) -> np.ndarray:
    """The order of each epoch, put together from what the processes have; at its end some may be repeated."""
    samplers = [SAMPLERS[name](LABELS, rank=rank, num_replicas=size, seed=7) for rank in range(size)]
    found = []
    for epoch in range(epochs):
        for sampler in samplers:
            sampler.set_epoch(epoch)
        together = np.stack([list(sampler) for sampler in samplers], axis=1).ravel()
        repeated = len(together) - N
        assert repeated < size and (together[N:] == together[:repeated]).all()
        found.append(together[:N])
    return np.stack(found)


def largest_z(order: np.ndarray) -> float:
    """Over all samples and all processes of 2 to 8: how far a sample's count is from its share, in standard deviations.

    An epoch has a sample k times in all; each of these is a process's with a chance of 1 / size.
    """
    worst, counts = 0.0, np.bincount(order.ravel(), minlength=N)
    for size in range(2, 9):
        for rank in range(size):
            mine = order[:, rank::size]
            share = mine.shape[1] / N
            seen = np.bincount(mine.ravel(), minlength=N)
            worst = max(worst, float((abs(seen - counts * share) / np.sqrt(counts * share * (1 - share))).max()))
    return worst


if __name__ == "__main__":
    main()
