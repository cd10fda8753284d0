"""Procrustean Training for Imbalanced Deep Learning: Tiny-ImageNet, Tiered-ImageNet, iNaturalist and ImageNet-LT."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from equipoise.reproduction.published import printed_rows

from .feature_weakening import PAPER, PREFIX, READING, WORDS, weakening
from .study_file import COUNTS, Row, StudyFile

TINY = [(shape, ratio) for shape in WORDS for ratio in (100, 10)]  # the columns of table 2, top-1 and top-5 each
TABLE2 = """
    ERM        | 33.8 57.4 49.7 73.3 36.2 55.9 49.1 72.9
    CB         | 27.3 47.4 48.4 71.1 25.1 40.9 45.5 66.8
    LDAM-DRW   | 37.5 60.9 52.8 76.2 39.4 61.9 52.6 76.7
    τ-norm     | 36.4 59.8 49.6 72.8 40.0 61.9 51.7 75.2
    CDT        | 37.9 61.4 52.7 75.6 39.6 61.5 53.3 76.2
    MFW        | 35.4 59.2 51.0 73.4 40.4 62.9 52.9 76.3
    MFW w/ DRW | 36.2 59.8 52.8 74.5 40.0 61.2 54.3 76.7
"""
TABLE3 = """
    ERM        | 41.7 58.1
    LDAM       | 42.3 63.1
    CDT        | 43.8 64.2
    cRT        | 44.4 66.5
    τ-norm     | 43.0 62.4
    LWS        | 42.6 58.8
    Remix      | 43.4 62.6
    MFW        | 46.1 67.5
    MFW w/ DRW | 46.4 67.8
"""
TABLE4 = """
    ERM        | 58.8 80.1 64.3 84.5
    CB         | 61.5 80.9 -    -
    LDAM       | 64.6 83.5 66.1 -
    LDAM-DRW   | 68.0 85.2 68.6 85.3
    CDT        | 63.7 82.5 69.5 86.8
    BBN        | 66.3 -    69.6 -
    cRT        | 65.2 -    67.6 -
    τ-norm     | 65.6 -    69.3 -
    Remix-DRW  | -    -    70.5 87.3
    MFW        | 65.5 85.3 67.3 85.8
    MFW w/ DRW | 66.7 85.5 69.6 86.1
"""
TABLE9 = {
    "resnet10": """
        OLTR            | 41.9
        cRT             | 41.8
        τ-norm          | 40.6
        LWS             | 41.4
        CDT             | 41.4
        SEQL            | 36.4
        MFW             | 40.1
        MFW w/ DRW      | 42.0
    """,
    "resnext50": """
        OLTR            | 48.7
        cRT             | 49.6
        τ-norm          | 49.4
        LWS             | 49.9
        De-confound     | 48.6
        De-confound-TDE | 51.8
        MFW             | 50.5
        MFW w/ DRW      | 51.9
    """,
}
OWN_TRAININGS = "rows of other papers had trainings of their own"
UNTUNED = (
    "α is CIFAR's (0.2 long-tailed, 5 with steps), as its choice here is not printed; τ = 1 and CDT's γ are not tuned"
)


def _printed(top1: str, top5: str) -> str:
    return top1 if top5 == "-" else f"{top1}, top-5 {top5}"


def _large_row(name: str, shape: str, batch_size: int = 128) -> dict[str, Any]:
    """A row on data with many classes. The second stages' rate of 0.2 belongs to batches of 512."""
    if name in ("cRT", "LWS"):
        return {"stage": f"{name.lower()}(lr={0.2 * batch_size / 512})"}
    if name == "CB":  # of LDAM's paper, which this one quotes
        return {"preset": "CB Softmax"}
    if name == "De-confound":  # the same training, without the correction at test time
        return {"head": "causal(alpha=0.0)"}
    if name == "De-confound-TDE":
        return {"head": "causal(alpha=3.0)"}
    if name == "SEQL":  # the threshold of equalization loss for ImageNet-LT
        return {"loss": "equalization(threshold=0.00043)"}
    if name.startswith("MFW"):
        return {"preset": name.replace("MFW", weakening("cifar100", shape), 1)}
    return {"preset": name} if name != "τ-norm" else {"posthoc": "tau_norm(tau=1.0)"}


def _table2(column: int) -> StudyFile:
    shape, ratio = TINY[column]
    rows = {}
    for name, numbers in printed_rows(TABLE2).items():
        rows[name] = Row(_large_row(name, shape), _printed(*numbers[2 * column : 2 * column + 2]))
    return StudyFile(
        name=f"{PREFIX}_table2_{shape}_ratio{ratio}",
        source=f"{PAPER}, table 2: {WORDS[shape]} Tiny-ImageNet, ratio {ratio}.",
        question=f"On {WORDS[shape]} Tiny-ImageNet, ratio {ratio}, what beats plain training?",
        task={"name": "tiny_imagenet", "imbalance": shape, "ratio": ratio, "valid": 0},
        base={"preset": "training: MFW Tiny-ImageNet", "precision": "bf16"},
        rows=rows,
        images=sum(COUNTS[shape](200, 500, ratio)),
        differs=("weight decay 2e-4 is not printed", UNTUNED, *READING),
        seeds=3,
    )


def _table3() -> StudyFile:
    rows = {
        name: Row(_large_row(name, "step", 512), _printed(*numbers)) for name, numbers in printed_rows(TABLE3).items()
    }
    return StudyFile(
        name=f"{PREFIX}_table3_tiered_imagenet_step",
        source=f"{PAPER}, table 3: 351 frequent and 160 rare classes of Tiered-ImageNet.",
        question="On Tiered-ImageNet with 160 rare classes, what beats plain training?",
        task={"name": "tiered_imagenet"},
        base={"preset": "training: MFW Tiered-ImageNet", "precision": "bf16"},
        rows=rows,
        images=430_892,
        differs=("weight decay 5e-4 is not printed", UNTUNED, *READING),
        seeds=3,
    )


CROP = "resized_crop(area=(0.574, 0.574), aspect=(1.0, 1.0))"  # 224² pixels of 256 · 341, at any place
CROPPED = (
    "crops are squares of 57 % of the image, 224 of 256 pixels where it is of 4 : 3, while the paper brings all images "
    "to 256 × 256 first"
)


CB_FOCAL = {"preset": "CB Focal (iNaturalist)", "lr": 0.2}  # 4 times the rate of the others, as in its own paper


def _table4(epochs: int) -> StudyFile:
    first = 0 if epochs == 90 else 2
    rows = {}
    for name, numbers in printed_rows(TABLE4).items():
        if numbers[first] != "-":
            options = CB_FOCAL if name == "CB" else _large_row(name, "long_tailed")
            rows[name] = Row(options, _printed(*numbers[first : first + 2]))
    return StudyFile(
        name=f"{PREFIX}_table4_{epochs}_epochs",
        source=f"{PAPER}, table 4: iNaturalist 2018, {epochs} epochs.",
        question=f"On iNaturalist 2018 with {epochs} epochs, what beats plain training?",
        task={"name": "inaturalist2018(size=224, resize=256)", "valid": 0},
        base={"preset": "training: MFW iNaturalist", "epochs": epochs, "augment": CROP, "precision": "bf16"},
        rows=rows,
        images=437_513,
        differs=("weight decay 1e-4 is not printed", CROPPED, OWN_TRAININGS, UNTUNED, *READING),
        seeds=3,
    )


def _table9(model: str, title: str) -> StudyFile:
    rows = {"ERM": Row({"preset": "ERM"})}
    rows |= {
        n: Row(_large_row(n, "long_tailed", 256), numbers[0]) for n, numbers in printed_rows(TABLE9[model]).items()
    }
    return StudyFile(
        name=f"{PREFIX}_table9_{model}",
        source=f"{PAPER}, table 9: ImageNet-LT, {title}; ERM, which the table does not have, is the baseline.",
        question=f"On ImageNet-LT with {title}, what beats plain training?",
        task={"name": "imagenet_lt(size=224, resize=256)"},
        base={"preset": "training: MFW ImageNet-LT", "model": model, "augment": CROP, "precision": "bf16"},
        rows=rows,
        images=115_846,
        differs=("weight decay 5e-4 is not printed", CROPPED, OWN_TRAININGS, UNTUNED, *READING),
        seeds=3,
    )


def studies() -> Iterator[StudyFile]:
    yield from (_table2(column) for column in range(len(TINY)))
    yield _table3()
    yield from (_table4(epochs) for epochs in (90, 180))
    yield from (_table9(*network) for network in (("resnet10", "ResNet-10"), ("resnext50", "ResNeXt-50")))
