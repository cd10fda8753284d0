"""Class-Balanced Loss Based on Effective Number of Samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from equipoise.reproduction.published import printed_rows

from .study_file import Row, StudyFile, cifar_images, published

PREFIX = "class_balanced"
PAPER = "Class-balanced loss (Cui, Jia, Lin, Song, Belongie, CVPR 2019)"
TITLES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}

# -- table 2 -----------------------------------------------------------------------------------------------------------

RATIOS = (200, 100, 50, 20, 10, 1)
PUBLISHED = published(PREFIX)  # error rates
TRAINING = {"preset": "training: class-balanced CIFAR", "precision": "bf16"}
NETWORK = (
    "the shortcuts of the network take every second pixel, where the authors' code averages four",
    "bf16",
    "the paper gives no number of seeds",
)


def _losses() -> dict[str, dict[str, Any]]:
    focal = {f"Focal (γ = {gamma})": {"loss": f"sigmoid_focal(gamma={gamma})"} for gamma in (0.5, 1.0, 2.0)}
    return {"Softmax": {"preset": "Softmax"}, "Sigmoid": {"preset": "Sigmoid"}, **focal}


def _table2(data: str, ratio: int) -> StudyFile:
    file = f"{PREFIX}_table2_{data}_ratio{ratio}"
    errors = PUBLISHED[file]
    rows = {name: Row(options, _accuracy(errors[name])) for name, options in _losses().items()}
    if ratio > 1:  # at ratio 1 all weights are 1
        preset = {"preset": f"CB ({TITLES[data]}, ratio {ratio})"}
        rows["Class-balanced"] = Row(preset, _accuracy(errors["Class-balanced"]))
    shape = {"imbalance": "long_tailed", "ratio": ratio} if ratio > 1 else {}
    images = cifar_images(data, "long_tailed", ratio)
    title = f"long-tailed {TITLES[data]}, ratio {ratio}" if ratio > 1 else f"all of {TITLES[data]}"
    return StudyFile(
        name=file,
        source=f"{PAPER}, table 2: {title}; the class-balanced row has the loss, β and γ of the table's last rows.",
        question=f"On {title}, which loss beats softmax cross-entropy?",
        task={"name": data, **shape, "valid": 0},
        base=TRAINING,
        rows=rows,
        images=images,
        differs=NETWORK,
    )


def _accuracy(error: str) -> str:
    return f"{100 - float(error):.2f} (error {error})"


# -- figure 5 ----------------------------------------------------------------------------------------------------------

BETAS = (0.9, 0.99, 0.999, 0.9999)  # section 5.3


def _figure5(data: str) -> StudyFile:
    rows = {name: Row(options) for name, options in _losses().items()}
    for loss, options in _losses().items():
        for beta in BETAS:
            rows[f"CB {loss}, β = {beta}"] = Row({**options, "weighting": f"effective_number(beta={beta})"})
    return StudyFile(
        name=f"{PREFIX}_figure5_{data}",
        source=f"{PAPER}, figure 5: long-tailed {TITLES[data]}, ratio 50, every loss without weights and with every β.",
        question=f"On long-tailed {TITLES[data]}, ratio 50, which β suits which loss?",
        task={"name": data, "imbalance": "long_tailed", "ratio": 50, "valid": 0},
        base=TRAINING,
        rows=rows,
        images=cifar_images(data, "long_tailed", 50),
        differs=NETWORK,
    )


# -- table 3 -----------------------------------------------------------------------------------------------------------

LARGE = {  # in the order of the columns: images, title, preset, each with the top-1 and the top-5 error
    "inaturalist2017": (579_184, "iNaturalist 2017", "CB Focal (iNaturalist)"),
    "inaturalist2018": (437_513, "iNaturalist 2018", "CB Focal (iNaturalist)"),
    "imagenet": (1_281_167, "ImageNet", "CB Focal (ImageNet)"),
}
NETWORKS = {f"ResNet-{depth}": f"resnet(depth={depth}, zero_gamma=True)" for depth in (50, 101, 152)}
AT_224 = """
    Softmax, ResNet-50   | 45.38 22.67 42.86 21.31 23.92 7.03
    Softmax, ResNet-101  | 42.57 20.42 39.47 18.86 22.65 6.47
    Softmax, ResNet-152  | 41.42 19.47 38.61 18.07 21.68 5.92
    CB Focal, ResNet-50  | 41.92 20.92 38.88 18.97 22.71 6.72
    CB Focal, ResNet-101 | 39.06 18.96 36.12 17.18 21.57 5.91
    CB Focal, ResNet-152 | 38.06 18.42 35.21 16.34 20.87 5.61
"""
AT_320 = """
    CB Focal, ResNet-50  | 38.16 18.28 35.84 16.85 21.99 6.27
    CB Focal, ResNet-101 | 34.96 15.90 32.02 14.27 20.25 5.34
    CB Focal, ResNet-152 | 33.73 14.96 30.95 13.54 19.72 4.97
"""
RESIZED = {224: 256, 320: 366}  # the short side from which the test view is cut, of the released code


def _table3(column: int, size: int) -> StudyFile:
    data, (images, title, focal) = list(LARGE.items())[column]
    rows = {}
    for name, errors in printed_rows(AT_224 if size == 224 else AT_320).items():
        loss, network = name.split(", ")
        top1, top5 = errors[2 * column : 2 * column + 2]
        options = {"preset": "Softmax" if loss == "Softmax" else focal, "model": NETWORKS[network]}
        rows[name] = Row(options, f"{_accuracy(top1)}, top-5 {_accuracy(top5)}")
    return StudyFile(
        name=f"{PREFIX}_table3_{data}_{size}",
        source=f"{PAPER}, table 3{' and figure 7' if size == 224 else ''}: {title}, images of {size} × {size} pixels.",
        question=f"On {title} at {size} pixels, does class-balanced focal loss beat softmax cross-entropy?",
        task={"name": f"{data}(size={size}, resize={RESIZED[size]})", "valid": 0},
        base={"preset": "training: class-balanced ImageNet", "precision": "bf16", "accumulate": 4},
        rows=rows,
        images=images,
        differs=(
            "bf16",
            "the paper gives no number of seeds",
        ),
        seeds=3,
    )


def studies() -> Iterator[StudyFile]:
    for data in TITLES:
        yield from (_table2(data, ratio) for ratio in RATIOS)
    yield from (_figure5(data) for data in TITLES)
    yield from (_table3(column, size) for column in range(len(LARGE)) for size in RESIZED)
