"""One loss of Equipoise in a plain PyTorch loop, on real digits made rare: nothing else of it is needed."""

import torch
from sklearn.datasets import load_digits

from equipoise.losses import BalancedSoftmaxLoss

images, labels = (torch.tensor(array) for array in load_digits(return_X_y=True))
keep = torch.rand(len(labels)) < 0.7**labels  # zeros are common, nines are rare
images, labels = images[keep].float() / 16, labels[keep]
network = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
loss = BalancedSoftmaxLoss(class_counts=torch.bincount(labels, minlength=10))
for _epoch in range(20):
    for batch in torch.randperm(len(labels)).split(32):
        optimizer.zero_grad()
        loss(network(images[batch]), labels[batch]).backward()
        optimizer.step()
print(f"accuracy on the images it learned from: {(network(images).argmax(1) == labels).float().mean():.3f}")
