"""A sampler in a plain PyTorch loop on several processes, resumable in the middle of an epoch on any number of them.

torchrun --nproc-per-node=2 examples/distributed/plain_ddp.py
"""

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

from equipoise.imbalance import DistributedWeightedSampler

EPOCHS, BATCH = 3, 16


def train(images, labels, checkpoint=None, stop_at=None):
    """Train on this process's samples; gives the last checkpoint and the samples visited in each epoch."""
    # the largest class comes 4 times as often as the smallest, whatever it is in the data
    sampler = DistributedWeightedSampler.to_ratio(labels, ratio=4.0)
    loader = DataLoader(TensorDataset(images, labels, torch.arange(len(labels))), BATCH, sampler=sampler)
    network = DistributedDataParallel(nn.Linear(images.shape[1], int(labels.max()) + 1))
    optimizer = torch.optim.SGD(network.parameters(), 0.1)
    first, step, visited = 0, 0, {}
    if checkpoint:
        network.module.load_state_dict(checkpoint["network"])
        sampler.load_state_dict(checkpoint["sampler"])
        first, step = sampler.epoch, checkpoint["step"]
    for epoch in range(first, EPOCHS):
        sampler.set_epoch(epoch)
        visited[epoch] = seen = []
        for x, y, index in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x), y).backward()
            optimizer.step()
            seen += index.tolist()
            step += 1
            if step == stop_at:
                # `visited` says how far training is: loaders with workers read ahead of it
                state = {"network": network.module.state_dict(), "sampler": sampler.state_dict(len(seen)), "step": step}
                return state, visited
    return None, visited


if __name__ == "__main__":
    distributed.init_process_group("gloo")
    generator = torch.Generator().manual_seed(0)
    images, labels = torch.randn(200, 8, generator=generator), torch.tensor([0] * 150 + [1] * 40 + [2] * 10)
    state, _ = train(images, labels, stop_at=5)
    _, rest = train(images, labels, checkpoint=state)
    print(f"process {distributed.get_rank()} went on with {[len(seen) for seen in rest.values()]} samples an epoch")
    distributed.destroy_process_group()
