"""Bias Loss for Mobile Neural Networks, supplement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from equipoise.reproduction.published import printed_rows

from .study_file import Row, StudyFile, published

PREFIX = "bias_loss"
PAPER = "Bias loss (Abrahamyan, Ziatchin, Chen, Deligiannis, ICCV 2021), supplement"

NETWORKS = {  # as the tables name them -> file name, network here
    "ShuffleNetV2 0.5×": ("shufflenet_v2", "shufflenet_v2_x0_5"),
    "MobileNetV2 0.75×": ("mobilenet_v2", "mobilenet_v2(width=0.75)"),
    "NASNet-A (N = 4)": ("nasnet_a", "nasnet_a_n4"),
    "SqueezeNet": ("squeezenet", "squeezenet(bypass=True)"),
    "DenseNet (k = 12)": ("densenet_k12", "densenet100_k12"),
    "DenseNet (k = 24)": ("densenet_k24", "densenet100_k24"),
    "ResNet 18": ("resnet18", "resnet18"),
    "EfficientNet-B4": ("efficientnet_b4", "timm/efficientnet_b4"),
    "Inception v3": ("inception_v3", "torchvision/inception_v3"),
}
TABLE1 = """
    ShuffleNetV2 0.5× | 51.9 52.8
    DenseNet (k = 12) | 57.2 58.2
    ResNet 18         | 57.5 58.6
    EfficientNet-B4   | 57.7 56.9
    Inception v3      | 65.4 64.3
    DenseNet (k = 24) | 67.5 66.6
"""
METHODS1 = ("Softmax", "Bias loss")
TABLE2 = ("ShuffleNetV2 0.5×", "MobileNetV2 0.75×", "NASNet-A (N = 4)", "SqueezeNet", "DenseNet (k = 12)")
PUBLISHED = published(PREFIX)
SCALING = (
    "variances are scaled by the smallest and largest of their batch, where the released code keeps the smallest of "
    "all training (`Bias loss (released)`, docs/methods/bias.md)",
    "bf16",
    "the supplement gives no number of seeds",
)


class Data(NamedTuple):
    """What the studies of one table share."""

    title: str
    task: str
    images: int
    question: str
    differs: str


DATA = {
    1: Data(
        "Tiny-ImageNet",
        "tiny_imagenet",
        100_000,
        "does weighing samples by the variance of their features help?",
        "momentum 0.9, weight decay 1e-4 and the augmentation are not in the supplement",
    ),
    2: Data(
        "CIFAR-100",
        "cifar100",
        50_000,
        "which weighing of samples helps?",
        "200 epochs, batches of 128, one epoch of warm-up and shifts of 4 pixels are not in the supplement but in "
        "weiaicunzai/pytorch-cifar100, whose accuracies of four of these networks, cut to one decimal, it prints for "
        "cross-entropy",
    ),
}


def _rows(printed: Mapping[str, str]) -> dict[str, Row]:
    return {name: Row({"preset": name}, number) for name, number in printed.items()}


def _study(table: int, network: str, rows: Mapping[str, Row]) -> StudyFile:
    (file, model), data = NETWORKS[network], DATA[table]
    return StudyFile(
        name=f"{PREFIX}_table{table}_{file}",
        source=f"{PAPER}, table {table}: {network} on {data.title}.",
        question=f"On {data.title} with {network}, {data.question}",
        task={"name": data.task, "valid": 0},
        base={"preset": f"training: bias loss {data.title}", "model": model, "precision": "bf16"},
        rows=rows,
        images=data.images,
        differs=(data.differs, *SCALING),
    )


def _table2(network: str) -> StudyFile:
    rows = _rows(PUBLISHED[f"{PREFIX}_table2_{NETWORKS[network][0]}"])
    rows["Bias loss (mean and variance)"] = Row({"preset": "Bias loss (mean and variance)"}, "no gain, not printed")
    return _study(2, network, rows)


def studies() -> Iterator[StudyFile]:
    for network, numbers in printed_rows(TABLE1).items():
        yield _study(1, network, _rows(dict(zip(METHODS1, numbers, strict=True))))
    yield from (_table2(network) for network in TABLE2)
