"""A network trained on long-tailed digits by plain PyTorch, and digits it has not seen."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from equipoise.data import load_task


def small_network(norm=nn.BatchNorm2d):
    layers = [nn.Conv2d(1, 8, 3, padding=1), norm(8), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1, stride=2), norm(16)]
    return nn.Sequential(*layers, nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 10))


def train(network, images, labels, epochs=12):
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(labels)).split(32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(images[rows]), labels[rows]).backward()
            optimizer.step()
    return network.eval()


@pytest.fixture(scope="session")
def digits():
    task = load_task("digits", imbalance="long_tailed", ratio=50)
    train_x, test_x = (split.images.float() / 255 for split in (task.train, task.test))
    return SimpleNamespace(
        task=task, x=train_x, y=task.train.labels, test_x=test_x, test_y=task.test.labels, counts=task.class_counts
    )


@pytest.fixture(scope="session")
def held_out(digits):
    return list(zip(digits.test_x.split(100), digits.test_y.split(100), strict=True))


@pytest.fixture(scope="session")
def trained(digits):
    torch.manual_seed(0)
    return train(small_network(), digits.x, digits.y)


@pytest.fixture(scope="session")
def trained_without_norm(digits):
    torch.manual_seed(0)
    return train(small_network(nn.Identity), digits.x, digits.y)
