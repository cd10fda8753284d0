"""Bias Loss for Mobile Neural Networks, supplement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from equipoise.reproduction.published import printed_rows

from .study_file import Row, StudyFile, published

PREFIX = "bias_loss"
PAPER = "Bias loss (Abrahamyan, Ziatchin, Chen, Deligiannis, ICCV 2021), supplement"

NETWORKS = {  # as the tables name them -> file name, network here
    "ShuffleNetV2 0.5×": ("shufflenet_v2", "shufflenet_v2_x0_5"),
    "MobileNetV2 0.75×": ("mobilenet_v2", "mobilenet_v2(width=0.75)"),
    "NASNet-A (N = 4)": ("nasnet_a", "nasnet_a_n4"),
    "SqueezeNet": ("squeezenet", "squeezenet"),
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


def _rows(printed: Mapping[str, str]) -> dict[str, Row]:
    return {name: Row({"preset": name}, number) for name, number in printed.items()}


def _table1(network: str, numbers: list[str]) -> StudyFile:
    file, model = NETWORKS[network]
    return StudyFile(
        name=f"{PREFIX}_table1_{file}",
        source=f"{PAPER}, table 1: {network} on Tiny-ImageNet.",
        question=f"On Tiny-ImageNet with {network}, does weighing samples by the variance of their features help?",
        task={"name": "tiny_imagenet", "valid": 0},
        base={"preset": "training: bias loss Tiny-ImageNet", "model": model, "precision": "bf16"},
        rows=_rows(dict(zip(METHODS1, numbers, strict=True))),
        images=100_000,
        differs=("momentum 0.9, weight decay 1e-4 and the augmentation are not in the supplement", *SCALING),
    )


def _table2(network: str) -> StudyFile:
    file, model = NETWORKS[network]
    rows = _rows(PUBLISHED[f"{PREFIX}_table2_{file}"])
    rows["Bias loss (mean and variance)"] = Row({"preset": "Bias loss (mean and variance)"}, "no gain, not printed")
    return StudyFile(
        name=f"{PREFIX}_table2_{file}",
        source=f"{PAPER}, table 2: {network} on CIFAR-100.",
        question=f"On CIFAR-100 with {network}, which weighing of samples helps?",
        task={"name": "cifar100", "valid": 0},
        base={"preset": "training: bias loss CIFAR-100", "model": model, "precision": "bf16"},
        rows=rows,
        images=50_000,
        differs=("200 epochs and batches of 128 are not in the supplement", *SCALING),
    )


def studies() -> Iterator[StudyFile]:
    yield from (_table1(network, numbers) for network, numbers in printed_rows(TABLE1).items())
    yield from (_table2(network) for network in TABLE2)
