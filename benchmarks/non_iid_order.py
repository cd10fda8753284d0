"""Batches of two classes, shuffled before they are cut into ghost batches or not: what ghost batch norm makes of them.

    python benchmarks/non_iid_order.py            # digits, cnn_small, six seeds: 95 seconds on two cores
    python benchmarks/non_iid_order.py --norm "batch_group(groups=8)"

The paper of the four things does not say which it has. Left as they are drawn, all images of a ghost are of one class.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor

import equipoise
from equipoise.core import register
from equipoise.imbalance import NonIIDSampler

RATES = (0.1, 0.02, 0.004)


@register("non_iid_blocks", kind="sampler", year=2020, arxiv="1906.03548")
class BlocksSampler(NonIIDSampler):
    """As `non_iid`, but each batch has its classes one after the other: the same classes, in order."""

    def place_classes(self, generator: torch.Generator, progress: float) -> Tensor:
        batches = super().place_classes(generator, progress).split(self.batch_size)
        return torch.cat([batch.sort().values for batch in batches])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--norm", default="ghost(ghost_size=8)")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--out", default="runs/non_iid_order")
    asked = parser.parse_args()
    methods = {}
    for order, sampler in (("shuffled", "non_iid"), ("in blocks", "non_iid_blocks")):
        for rate in RATES:
            options = {"sampler": f"{sampler}(classes=2)", "lr": rate}
            methods[f"{order}, {rate}"] = {**options, "posthoc": "example_weighing(alpha=0.0)"}
            methods[f"{order}, {rate}, weighing"] = {**options, "posthoc": "example_weighing(metric='accuracy')"}
    training = {"epochs": 60, "batch_size": 32, "warmup": 3, "schedule": "cosine", "weight_decay": 5e-4}
    results = equipoise.run(
        {
            "question": "Are ghosts of one class worse than ghosts of two?",
            "baseline": f"shuffled, {RATES[0]}",
            "metric": "accuracy",
            "seeds": asked.seeds,
            "task": {"name": "digits", "valid": 0.2},
            "base": {"model": "cnn_small", "norm": asked.norm, "affine_decay": False, **training},
            "methods": methods,
        },
        asked.out,
    )
    print(results)
    for row in results.rows:
        low, high = 100 * row["low"], 100 * row["high"]
        print(f"{row['method']:<26} {100 * row['mean']:.1f} % [{low:.1f}, {high:.1f}], n = {row['n']}")


if __name__ == "__main__":
    main()
