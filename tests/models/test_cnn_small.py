"""The small network learns, and quickly."""

import pytest
import torch
import torch.nn.functional as F

from equipoise.models import create_model


@pytest.fixture
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_learns_digits(one_thread):
    datasets = pytest.importorskip("sklearn.datasets")
    images, labels = datasets.load_digits(return_X_y=True)
    x = torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8) / 8 - 1
    x, y = x.contiguous(memory_format=torch.channels_last), torch.tensor(labels)
    order = torch.randperm(len(x))
    train, test = order[:1300], order[1300:]

    network = create_model("cnn_small", 10, in_channels=1).to(memory_format=torch.channels_last)
    steps = 15 * (len(train) // 100)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(15):
        for batch in train[torch.randperm(len(train))].split(100):
            optimizer.zero_grad()
            F.cross_entropy(network(x[batch]), y[batch]).backward()
            optimizer.step()
            schedule.step()
    accuracy = (network.eval()(x[test]).argmax(1) == y[test]).float().mean().item()
    assert accuracy > 0.96


def test_width_scales_every_stage():
    network = create_model("cnn_small(width=8)", 4)
    assert network.feature_dim == 32 and network.stage2[0].out_channels == 16 and network.stem[0].out_channels == 8
