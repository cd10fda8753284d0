"""Demystifying Loss Functions for Classification (in print: Why Do Better Loss Functions Lead to Less Transferable
Features?).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from equipoise.reproduction.published import printed_rows

from .study_file import Row, StudyFile, published

PREFIX = "loss_functions"
PAPER = "Loss functions (Kornblith, Chen, Lee, Norouzi, NeurIPS 2021; the tables of its first version, ICLR 2021)"
PUBLISHED = published(PREFIX)
IMAGENET_IMAGES = 1_281_167
IMAGENET_TASK = {"name": "imagenet(size=224, resize=256)", "valid": 0}
IMAGENET_TRAINING = {"preset": "training: objectives ImageNet", "precision": "bf16", "accumulate": 8}
IMAGENET_DIFFERS = ("training ends at the epoch at which the paper stops it (table A.1)", "bf16")

# -- table 1 -----------------------------------------------------------------------------------------------------------

IMAGENET = """
    softmax              | 77.0±0.06,93.40±0.02
    squared error        | 77.2±0.04,92.79±0.02
    dropout              | 77.5±0.04,93.62±0.02
    label smoothing      | 77.6±0.03,93.78±0.01
    extra final layer L2 | 77.7±0.03,93.79±0.02
    logit penalty        | 77.7±0.02,93.83±0.02
    logit normalization  | 77.8±0.02,93.71±0.02
    cosine softmax       | 77.9±0.02,93.86±0.01
    sigmoid              | 77.9±0.05,93.50±0.02
"""
OBJECTIVES = tuple(printed_rows(IMAGENET))


def _rows(data: str, published: Mapping[str, str | None]) -> dict[str, Row]:
    return {name: Row({"preset": f"{name} ({data})"}, _told(number)) for name, number in published.items()}


def _told(number: str | None) -> str | None:
    if number is None:
        return None
    top1, _, top5 = number.partition(",")
    return f"{top1}, top-5 {top5}" if top5 else top1


def _cifar(data: str, title: str) -> StudyFile:
    name = f"{PREFIX}_table1_{data}"
    return StudyFile(
        name=name,
        source=f"{PAPER}, table 1: {title}, with the rates and decays of table A.2.",
        question=f"On {title}, which of the nine objectives beats softmax cross-entropy?",
        task={"name": data, "valid": 0},
        base={"preset": f"training: objectives {title}", "precision": "bf16"},
        rows=_rows(title, PUBLISHED[name]),
        images=50_000,
        differs=(
            "the paper gives neither the number of epochs (100) nor the augmentation (shifts and mirrors)",
            "bf16",
        ),
        seeds=25,
    )


def _imagenet(name: str, place: str, rows: Mapping[str, Row], question: str, seeds: int, **more: Any) -> StudyFile:
    settings = {"task": IMAGENET_TASK, "base": IMAGENET_TRAINING, "differs": IMAGENET_DIFFERS} | more
    return StudyFile(
        name=f"{PREFIX}_{name}",
        source=f"{PAPER}, {place}.",
        question=question,
        rows=rows,
        images=IMAGENET_IMAGES,
        seeds=seeds,
        **settings,
    )


def _table1_imagenet() -> StudyFile:
    return _imagenet(
        "table1_imagenet",
        "table 1: ImageNet. `equipoise analyze` of its folder gives tables 2, 3, B.2 to B.4 and E.1 and figures 1 to "
        "5, D.1 to D.3 and E.1 to E.3",
        _rows("ImageNet", {name: numbers[0] for name, numbers in printed_rows(IMAGENET).items()}),
        "On ImageNet, which of the nine objectives beats softmax cross-entropy?",
        seeds=8,
    )


# -- table 4 -----------------------------------------------------------------------------------------------------------

TABLE4 = """
    0.05 | 77.6
    0.01 | 74.9
    0.02 | 77.0
    0.03 | 77.5
    0.04 | 77.6
    0.06 | 77.5
    0.07 | 77.5
    0.08 | 77.6
"""


def _table4() -> StudyFile:
    cosine = {"preset": "cosine softmax (ImageNet)"}
    rows = {}
    for tau, (printed,) in printed_rows(TABLE4).items():
        scaled = {"head": f"cosine(tau={tau})", "loss": f"cross_entropy(loss_scale={tau})"}
        rows[f"τ = {tau}"] = Row(cosine | scaled, printed)
    return _imagenet(
        "table4",
        "table 4 and figure 5b: the temperature of cosine softmax, ImageNet; the loss is scaled by τ, as in the "
        "table's footnote. `equipoise analyze --transfer` gives class separation and transfer",
        rows,
        "On ImageNet, which temperature of cosine softmax classifies best, and which features transfer best?",
        seeds=3,
    )


# -- table A.2 ---------------------------------------------------------------------------------------------------------

COARSE = {"lr": [0.01, 0.0316, 0.1, 0.316, 1.0, 3.16], "lr*weight_decay": [3.16e-5, 1e-4, 3.16e-4, 1e-3]}


def _table_a2(data: str, title: str) -> StudyFile:
    return StudyFile(
        name=f"{PREFIX}_table_a2_{data}",
        source=f"{PAPER}, table A.2: {title}. `equipoise tune` of this file searches rate and decay from coarse to "
        "fine, as in appendix A.1.",
        question=f"On {title}, which of the nine objectives is best once all are tuned alike?",
        task={"name": data, "valid": 0.1},
        base={"preset": f"training: objectives {title}", "precision": "bf16"},
        rows=_rows(title, dict.fromkeys(OBJECTIVES)),
        images=45_000,
        differs=(
            "every objective has 40 trials, where the paper stops by hand",
            "the paper gives neither the number of epochs (100), nor the images held out, nor the grids of α, ρ, β, τ",
            "bf16",
        ),
        tune={"trials": 40, "sampler": "grid", "seeds": 5, "space": COARSE},
    )


# -- tables B.1 and C.1 to C.3 ----------------------------------------------------------------------------------------

TABLE_B1 = """
    softmax              | 78.6±0.03,94.24±0.03
    squared error        | 77.7±0.03,93.28±0.01
    logit normalization  | 78.8±0.11,94.34±0.04
    label smoothing      | 78.8±0.03,94.60±0.03
    cosine softmax       | 78.9±0.06,94.38±0.03
    logit penalty        | 78.9±0.06,94.63±0.02
    dropout              | 79.0±0.02,94.50±0.04
    extra final layer L2 | 79.0±0.03,94.52±0.01
    sigmoid              | 79.1±0.07,94.17±0.02
"""
TABLE_C1 = """
    -                        | 79.9 80.4 80.6 80.6
    dropout 0.7              | 80.3 80.3 80.3 80.2
    dropout 0.8              | 80.2 80.4 80.4 80.4
    dropout 0.9              | -    80.3 80.5 80.6
    dropout 0.95             | -    80.4 80.6 80.7
    logit penalty 5e-05      | 80.4 80.3 80.5 80.6
    logit penalty 0.0001     | 80.4 80.3 80.5 80.5
    logit penalty 0.0002     | 80.4 80.3 80.4 80.5
    logit penalty 0.0004     | 80.4 80.2 80.3 80.5
    logit penalty 0.0006     | 80.5 80.2 80.3 80.5
    logit normalization 0.02 | -    -    80.4 -
    logit normalization 0.03 | 80.3 -    80.6 -
    logit normalization 0.04 | 80.4 -    80.6 -
    logit normalization 0.05 | 80.3 -    80.5 -
    logit normalization 0.06 | 80.3 -    80.5 -
    cosine 0.045             | 80.6 -    80.5 -
    cosine 0.05              | -    -    80.6 -
    cosine 0.06              | 80.4 -    75.3 -
"""  # the paper prints softmax with the cosine of 0.05 twice; here it is once, in the first row
COLUMNS = {
    "softmax": {"loss": "cross_entropy"},
    "label smoothing": {"loss": "label_smoothing(alpha=0.1)"},
    "sigmoid": {"loss": "sigmoid"},
    "cosine softmax": {"head": "cosine(tau=0.05)"},
}
TABLE_C2 = """
    softmax        | 77.0±0.06,93.40±0.02 77.7±0.05,93.74±0.05 78.0±0.05,93.98±0.03
    sigmoid        | 77.9±0.05,93.50±0.02 78.5±0.04,93.82±0.02 78.5±0.07,93.94±0.04
    logit penalty  | 77.7±0.02,93.83±0.02 78.3±0.05,94.10±0.03 78.0±0.05,93.95±0.05
    cosine softmax | 77.9±0.02,93.86±0.01 78.3±0.02,94.12±0.04 78.4±0.04,94.14±0.02
"""
AUTOAUGMENT = {"augment": "autoaugment(policy='imagenet', area=(0.1, 1.0))"}
MIXUP = {"mix": "mixup(alpha=0.2, per_batch=True)"}
TABLE_C3 = """
    softmax        | 306 77.9±0.02,93.77±0.03
    sigmoid        | 324 78.9±0.04,93.96±0.06
    logit penalty  | 346 78.6±0.07,94.30±0.01
    cosine softmax | 308 78.7±0.04,94.24±0.02
"""
TABLE_C3_MIXUP = """
    sigmoid        | 384 79.1±0.06,94.28±0.03
    cosine softmax | 348 79.1±0.09,94.49±0.01
"""


def _table_b1() -> StudyFile:
    return _imagenet(
        "table_b1",
        "table B.1: Inception v3 on ImageNet",
        _rows("ImageNet", {name: numbers[0] for name, numbers in printed_rows(TABLE_B1).items()}),
        "On ImageNet with Inception v3, which of the nine objectives beats softmax cross-entropy?",
        seeds=3,
        base={**IMAGENET_TRAINING, "model": "torchvision/inception_v3"},
        differs=("the epochs are those of ResNet-50, as the paper does not print its others", *IMAGENET_DIFFERS),
    )


def _combined(objective: str, regularizer: str) -> dict[str, Any]:
    """A column of table C.1 with one of its rows."""
    name, _, value = regularizer.rpartition(" ")
    options = COLUMNS[objective]
    if name == "dropout" and objective == "cosine softmax":
        return {"head": f"cosine(tau=0.05, keep={value})"}
    if name == "dropout":
        return {**options, "head": f"dropout(keep={value})"}
    if name == "logit penalty":
        return {**options, "penalty": f"logit_penalty(beta={value}, half=True)"}
    if name == "logit normalization" and objective == "sigmoid":
        return {"loss": f"sigmoid(tau={value})", "head": "linear"}
    if name == "logit normalization":
        return {"loss": f"logit_norm(tau={value})"}
    if name == "cosine":
        prior = ", prior='classes'" if objective == "sigmoid" else ""
        return {**options, "head": f"cosine(tau={value}{prior})"}
    return options


def _table_c1() -> StudyFile:
    rows = {}
    for regularizer, numbers in printed_rows(TABLE_C1).items():
        for objective, printed in zip(COLUMNS, numbers, strict=True):
            if printed != "-":
                name = objective if regularizer == "-" else f"{objective}, {regularizer}"
                rows[name] = Row(_combined(objective, regularizer), printed)
    return _imagenet(
        "table_c1",
        "table C.1: two regularizers or losses at once, ImageNet",
        rows,
        "On ImageNet, does combining objectives add anything?",
        seeds=3,
        task={**IMAGENET_TASK, "valid": 0.03906},
        differs=(
            "the paper prints the best accuracy of any epoch on 50,046 held-out training images; here the test set "
            "decides, after 200 epochs",
            "with dropout the biases of sigmoids start at 0",
            "bf16",
        ),
    )


def _table_c2() -> StudyFile:
    rows = {}
    for name, (plain, augmented, mixed) in printed_rows(TABLE_C2).items():
        preset = {"preset": f"{name} (ImageNet)"}
        rows[name] = Row(preset, _told(plain))
        rows[f"{name}, AutoAugment"] = Row(preset | AUTOAUGMENT, _told(augmented))
        rows[f"{name}, mixup"] = Row(preset | MIXUP, _told(mixed))
    return _imagenet(
        "table_c2",
        "table C.2: four objectives with AutoAugment and with mixup, ImageNet",
        rows,
        "On ImageNet, do AutoAugment and mixup add to better objectives?",
        seeds=3,
        differs=(
            "mixup's α is 0.2 throughout, where the paper chooses it from 0.1, 0.2, 0.3 and 0.4",
            "the epochs are those without augmentation, as the others are not printed",
            *IMAGENET_DIFFERS,
        ),
    )


def _table_c3() -> StudyFile:
    rows = {}
    for text, more, suffix in ((TABLE_C3, {}, ""), (TABLE_C3_MIXUP, MIXUP, ", mixup")):
        for name, (epochs, printed) in printed_rows(text).items():
            rows[f"{name}{suffix}"] = Row(
                {"preset": f"{name} (ImageNet)", "epochs": int(epochs), **more}, _told(printed)
            )
    return _imagenet(
        "table_c3",
        "table C.3: long training with AutoAugment, ImageNet",
        rows,
        "On ImageNet with AutoAugment and long training, which objective is best?",
        seeds=3,
        base={**IMAGENET_TRAINING, "schedule": "exponential(factor=0.985)", **AUTOAUGMENT},
        differs=("mixup's α is 0.2, as the paper does not print its choice", *IMAGENET_DIFFERS),
    )


def studies() -> Iterator[StudyFile]:
    yield _cifar("cifar10", "CIFAR-10")
    yield _cifar("cifar100", "CIFAR-100")
    yield _table_a2("cifar10", "CIFAR-10")
    yield _table_a2("cifar100", "CIFAR-100")
    yield _table1_imagenet()
    yield _table4()
    yield _table_b1()
    yield _table_c1()
    yield _table_c2()
    yield _table_c3()
