"""How well the class shares of unlabelled photographs are estimated: long-tailed CIFAR-10, and other shares in use.

    EQUIPOISE_DATA=… python benchmarks/prior_shift.py [--side 128] [--largest 5000 --of-each 1000]

A linear classifier is fitted on the features of a pretrained network for long-tailed photographs (50 : 1); a fifth of
them is held out, by which `estimate_prior` calibrates it. Then photographs of the test set are drawn with other shares.
Each row tells the L1 distance of true and estimated shares, and that of counting what is predicted.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor
from torch.nn import Linear
from torch.nn.functional import cross_entropy

from equipoise.core.files import features_folder
from equipoise.data import load_task
from equipoise.imbalance import estimate_prior
from equipoise.train import embed

RATIO = 50  # of the training photographs
DRAWS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=128, help="pixels of the square that the network sees")
    parser.add_argument("--largest", type=int, default=1000, help="training photographs of the largest class")
    parser.add_argument("--of-each", type=int, default=300, help="test photographs of each class to draw from")
    asked = parser.parse_args()
    torch.manual_seed(0)
    task = load_task("cifar10", imbalance="long_tailed", ratio=RATIO, n_max=asked.largest, valid=0.2)
    rows = torch.cat([(task.test.labels == c).nonzero().flatten()[: asked.of_each] for c in range(10)])
    backbone = f"efficientnet_lite0(pretrained=True, size={asked.side})"
    parts = {"train": task.train, "valid": task.valid, "test": task.test.take(rows)}
    x = {name: embed(part.images, backbone, cache=features_folder()) for name, part in parts.items()}
    mean, std = x["train"].mean(0), x["train"].std(0) + 1e-6
    linear = fitted((x["train"] - mean) / std, task.train.labels)
    with torch.no_grad():
        probs = {name: linear((own - mean) / std).softmax(1) for name, own in x.items()}
    labels = parts["test"].labels
    right = torch.stack([(probs["test"].argmax(1) == labels)[labels == c].float().mean() for c in range(10)])
    print(
        f"{len(task.train):,} training and {len(task.valid):,} validation images; balanced accuracy {right.mean():.1%}"
    )
    for name, shares in shifts().items():
        drawn = with_shares(labels, shares)
        truth = torch.bincount(labels[drawn], minlength=10) / len(drawn)
        found = estimate_prior(probs["valid"], task.valid.labels, probs["test"][drawn])
        counted = torch.bincount(probs["test"][drawn].argmax(1), minlength=10) / len(drawn)
        errors = [float((torch.as_tensor(each) - truth).abs().sum()) for each in (found, counted)]
        print(f"{name:<22} {len(drawn):>5} images   estimated {errors[0]:.3f}   counted {errors[1]:.3f}")


def fitted(x: Tensor, y: Tensor) -> Linear:
    linear = Linear(x.shape[1], 10)
    optimizer = torch.optim.LBFGS(linear.parameters(), max_iter=100)

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = cross_entropy(linear(x), y) + 1e-3 * linear.weight.square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    return linear


def shifts() -> dict[str, Tensor]:
    tail = 10.0 ** (-torch.arange(10) / 9)
    half = torch.full((10,), 0.5 / 9).index_fill(0, torch.tensor(9), 0.5)
    drawn = torch.distributions.Dirichlet(torch.ones(10)).sample((DRAWS,))
    named = {"uniform": torch.ones(10), "reversed, 1 : 10": tail.flip(0), "half of the rarest": half}
    return {name: s / s.sum() for name, s in named.items()} | {f"by chance {i}": s for i, s in enumerate(drawn)}


def with_shares(labels: Tensor, shares: Tensor) -> Tensor:
    """Rows of which each class has its share, as many as there are."""
    pools = [(labels == c).nonzero().flatten() for c in range(10)]
    total = min(len(pool) / float(share) for pool, share in zip(pools, shares, strict=True))
    return torch.cat([pool[: round(total * float(share))] for pool, share in zip(pools, shares, strict=True)])


if __name__ == "__main__":
    main()
