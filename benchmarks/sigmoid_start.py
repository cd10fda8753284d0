"""Whether All-CNN-C with one sigmoid for each class learns in its first steps on CIFAR-10, by rate and head's start.

    python benchmarks/sigmoid_start.py --data DIR             # PyTorch's start of a linear layer, rates 1 and 0.1
    python benchmarks/sigmoid_start.py --data DIR --std 0.01  # as the ImageNet networks of the paper start

Images are averaged to 16 x 16, which makes a step four times as short; else the training is that of the paper's table
A.2. A run is dead when no feature of any image is above 0 any more: then nothing it has learns.
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.nn.functional as F

from equipoise.data import load_task
from equipoise.losses import SigmoidLoss
from equipoise.models import create_model

DECAY = 10**-3.75  # the product of rate and weight decay
BATCH = 128


def train(
    images: torch.Tensor, labels: torch.Tensor, rate: float, std: float | None, seed: int, steps: int
) -> tuple[float, float]:
    """Mean loss of the last twenty steps, and the share of features above 0 after them."""
    torch.manual_seed(seed)
    network = create_model("allcnnc", num_classes=10, head="linear(prior='classes')")
    network.to(memory_format=torch.channels_last)
    if std is not None:
        torch.nn.init.normal_(network.head.weight, std=std)
    decayed = [p for p in network.parameters() if p.dim() > 1]
    others = [p for p in network.parameters() if p.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": DECAY / rate}, {"params": others}]
    optimizer = torch.optim.SGD(groups, lr=rate, momentum=0.9, nesterov=True)
    criterion, losses = SigmoidLoss(), []
    for _ in range(steps):
        i = torch.randint(len(labels), (BATCH,))
        x = F.avg_pool2d((images[i].float() / 255 - 0.47) / 0.25, 2).contiguous(memory_format=torch.channels_last)
        loss = criterion(network(x), labels[i])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        features = network.output(x).features
    assert features is not None
    return sum(losses[-20:]) / 20, (features > 0).float().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder of the data sets; default as EQUIPOISE_DATA says")
    parser.add_argument("--rates", type=float, nargs="+", default=[1.0, 0.1])
    parser.add_argument("--std", type=float, help="of the head's weights at the start; default as torch.nn.Linear")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--steps", type=int, default=250)
    asked = parser.parse_args()
    if asked.data:
        os.environ["EQUIPOISE_DATA"] = asked.data
    task = load_task("cifar10", valid=0)
    for rate in asked.rates:
        for seed in range(asked.seeds):
            loss, alive = train(task.train.images, task.train.labels, rate, asked.std, seed, asked.steps)
            told = "dead" if alive == 0 else f"{100 * alive:.1f} % of features above 0"
            print(f"rate {rate}, seed {seed}: loss {loss:.3f} (3.251 at the prior), {told}", flush=True)


if __name__ == "__main__":
    main()
