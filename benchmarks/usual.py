"""The peer of the speed comparisons: networks, data set and loop as people write them in their own repositories."""

from __future__ import annotations

import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

BATCH = 128


class Block(nn.Module):
    def __init__(self, cin: int, cout: int, stride: int = 1, project: bool = False):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.shortcut = nn.Identity()
        if stride != 1 or cin != cout:
            self.shortcut = Pad(cout - cin)
            if project:
                self.shortcut = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out = out + self.shortcut(x)
        return F.relu(out)


class Pad(nn.Module):
    def __init__(self, extra: int):
        super().__init__()
        self.extra = extra

    def forward(self, x):
        return F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.extra // 2, self.extra - self.extra // 2))


class ResNet(nn.Module):
    def __init__(self, widths, blocks: int, num_classes: int, channels: int, project: bool):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, widths[0], 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        layers, cin = [], widths[0]
        for i, width in enumerate(widths):
            for j in range(blocks):
                layers.append(Block(cin, width, 2 if i > 0 and j == 0 else 1, project))
                cin = width
        self.layers = nn.Sequential(*layers)
        self.linear = nn.Linear(cin, num_classes)

    def forward(self, x):
        x = self.layers(F.relu(self.bn1(self.conv1(x))))
        return self.linear(F.adaptive_avg_pool2d(x, 1).flatten(1))


class SmallCNN(nn.Module):
    """The layers of our cnn_small."""

    def __init__(self, num_classes: int, channels: int, width: int = 16):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 2 * width, 3, 2, 1, bias=False), nn.BatchNorm2d(2 * width)
        self.conv4, self.bn4 = nn.Conv2d(2 * width, 4 * width, 3, 2, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.linear = nn.Linear(4 * width, num_classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        x = F.relu(self.bn3(self.conv3(x)))
        x = F.relu(self.bn4(self.conv4(x)))
        return self.linear(x.mean((2, 3)))


def network(model: str, num_classes: int, channels: int) -> nn.Module:
    if model == "resnet32":
        return ResNet((16, 32, 64), 5, num_classes, channels, project=False)
    if model == "resnet18":
        return ResNet((64, 128, 256, 512), 2, num_classes, channels, project=True)
    return SmallCNN(num_classes, channels)


class UsualDataset(Dataset):
    """As in a thousand repositories: one image at a time, transforms in numpy, normalised to a float tensor."""

    def __init__(self, images: torch.Tensor, labels: torch.Tensor, pad: int = 4) -> None:
        self.images = images.permute(0, 2, 3, 1).numpy()
        self.labels = labels.tolist()
        self.pad = pad

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        image, pad = self.images[i], self.pad
        h, w, _ = image.shape
        image = np.pad(image, ((pad, pad), (pad, pad), (0, 0)))
        top, left = np.random.randint(0, 2 * pad + 1, 2)
        image = image[top : top + h, left : left + w]
        if np.random.rand() < 0.5:
            image = image[:, ::-1]
        tensor = torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1).float().div(255)
        return (tensor - 0.45) / 0.25, self.labels[i]


def usual_loop(images, labels, num_classes: int, model: str, device, workers: int, seconds: float) -> float:
    """Images per second: DataLoader with workers, float32, eager, loss.item() at every step."""
    net = network(model, num_classes, images.shape[1]).to(device)
    loader = DataLoader(
        UsualDataset(images, labels),
        batch_size=BATCH,
        shuffle=True,
        num_workers=workers,
        drop_last=True,
        pin_memory=device.type == "cuda",
        persistent_workers=workers > 0,
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=2e-4)
    criterion = nn.CrossEntropyLoss()
    seen, began, total = 0, None, 0.0
    while True:
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            loss = criterion(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            if began is None:
                began = time.perf_counter()  # the first batch waits for the workers to start
                continue
            seen += len(y)
            if time.perf_counter() - began > seconds:
                return seen / (time.perf_counter() - began)
