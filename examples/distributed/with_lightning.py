"""A sampler in Lightning on two processes: python examples/distributed/with_lightning.py

Lightning sees that the sampler divides its samples by itself, and tells it each epoch; nothing is to be switched off.
"""

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from equipoise.imbalance import ClassBalancedSampler

EPOCHS, BATCH = 2, 16


class Classifier(LightningModule):
    def __init__(self, inputs, classes):
        super().__init__()
        self.layer, self.visited = nn.Linear(inputs, classes), []

    def training_step(self, batch, number):
        x, y, index = batch
        self.visited += index.tolist()
        return nn.functional.cross_entropy(self.layer(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def train(images, labels, **options):
    """Train on two processes; gives the samples that this one visited."""
    # uniform in the first half of training, balanced in the second
    sampler = ClassBalancedSampler(labels, start=0.5, epochs=EPOCHS)
    loader = DataLoader(TensorDataset(images, labels, torch.arange(len(labels))), BATCH, sampler=sampler)
    classifier = Classifier(images.shape[1], int(labels.max()) + 1)
    trainer = Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=EPOCHS, logger=False, **options)
    trainer.fit(classifier, loader)
    return classifier.visited


if __name__ == "__main__":
    generator = torch.Generator().manual_seed(0)
    images, labels = torch.randn(200, 8, generator=generator), torch.tensor([0] * 150 + [1] * 40 + [2] * 10)
    print(f"visited {len(train(images, labels, enable_checkpointing=False))} samples in {EPOCHS} epochs")
