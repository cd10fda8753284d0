"""A sampler in Accelerate on several processes, resumable in the middle of an epoch.

accelerate launch --num-processes=2 examples/distributed/with_accelerate.py

`prepare` divides the batches of any loader, and tells the sampler each epoch. So leave `rank` and `num_replicas` out,
and give `state_dict` the samples that all processes together have visited.
"""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from equipoise.imbalance import DistributedWeightedSampler

EPOCHS, BATCH = 3, 16


def train(accelerator, images, labels, checkpoint=None, stop_at=None):
    """Train on this process's samples; gives the sampler's state at the stop and the samples visited in each epoch."""
    sampler = DistributedWeightedSampler.to_ratio(labels, ratio=4.0)
    if checkpoint:
        sampler.load_state_dict(checkpoint)
    data = TensorDataset(images, labels, torch.arange(len(labels)))
    network = nn.Linear(images.shape[1], int(labels.max()) + 1)
    network, optimizer, loader = accelerator.prepare(
        network, torch.optim.SGD(network.parameters(), 0.1), DataLoader(data, BATCH, sampler=sampler)
    )
    visited, steps = {}, 0
    for epoch in range(sampler.epoch, EPOCHS):
        loader.set_epoch(epoch)
        visited[epoch] = seen = []
        for x, y, index in loader:
            optimizer.zero_grad()
            accelerator.backward(nn.functional.cross_entropy(network(x), y))
            optimizer.step()
            seen += index.tolist()
            steps += 1
            if steps == stop_at:
                return sampler.state_dict(len(seen) * accelerator.num_processes), visited
    return None, visited


if __name__ == "__main__":
    accelerator = Accelerator(cpu=True)
    generator = torch.Generator().manual_seed(0)
    images, labels = torch.randn(200, 8, generator=generator), torch.tensor([0] * 150 + [1] * 40 + [2] * 10)
    state, _ = train(accelerator, images, labels, stop_at=5)
    _, rest = train(accelerator, images, labels, checkpoint=state)
    print(f"went on with {[len(seen) for seen in rest.values()]} samples an epoch")
    accelerator.end_training()
