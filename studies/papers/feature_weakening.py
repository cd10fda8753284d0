"""Procrustean Training for Imbalanced Deep Learning (major feature weakening, MFW)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .study_file import COUNTS, Row, StudyFile, cifar_images, table

PREFIX = "mfw"
PAPER = "Major feature weakening (Ye, Zhan, Chao, ICCV 2021)"
TITLES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
WORDS = {"long_tailed": "long-tailed", "step": "step-imbalanced"}
LONGER = {"epochs": 300}  # footnote 9: MFW needs more epochs than the 200 of its baselines
TRAINING = {"preset": "training: MFW CIFAR", "epochs": 200, "precision": "bf16"}

READING = (
    "the spread γ of the weakening is read as exp(std(log N)), as the paper does not say which it means "
    "(docs/methods/mfw.md)",
    "bf16",
    "the paper gives no number of seeds",
)

# -- table 1 -----------------------------------------------------------------------------------------------------------

RATIOS = (200, 100, 10)
CIFAR = [(data, shape, ratio) for data in TITLES for shape in WORDS for ratio in RATIOS]  # the columns
TABLE1 = """
    ERM             | 65.6 71.1 87.2 60.0 65.3 85.1 35.9 40.1 56.9 38.7 39.9 54.6
    Focal           | 65.3 70.4 86.8 -    63.9 83.6 35.6 38.7 55.8 -    38.6 53.5
    CB              | 68.9 74.6 87.5 -    61.9 84.6 36.2 39.6 58.0 -    33.8 53.1
    LDAM-DRW        | 74.6 77.0 88.2 73.6 76.9 87.8 39.5 42.0 58.7 42.4 45.4 59.5
    τ-norm          | 70.3 75.1 87.8 68.8 73.0 87.3 39.3 43.6 57.4 43.2 45.2 57.7
    CDT             | 74.7 79.4 89.4 70.3 76.5 88.8 40.5 44.3 58.9 40.0 47.0 59.6
    BBN             | -    79.8 88.3 -    -    -    -    42.6 59.1 -    -    -
    M2m             | -    79.1 87.5 -    -    -    -    43.5 57.6 -    -    -
    Meta-Weight     | 67.2 73.6 87.6 -    -    -    36.6 41.6 58.9 -    -    -
    DA              | 70.7 76.4 88.9 -    -    -    39.3 43.4 59.6 -    -    -
    Remix-DRW       | -    79.8 89.0 -    77.9 88.3 -    46.8 61.2 -    46.8 60.4
    De-confound-TDE | -    80.6 88.5 -    -    -    -    44.1 59.6 -    -    -
    MFW             | 73.2 78.5 89.8 75.4 80.1 89.6 40.7 44.7 60.1 42.5 46.9 61.2
    MFW w/ DRW      | 75.0 79.8 89.7 78.8 81.6 89.9 41.4 46.0 59.1 43.0 48.4 61.6
"""


def _weakening(data: str, shape: str) -> str:
    """The preset with the α of table 6 and the β of appendix C.2."""
    return "MFW (step)" if shape == "step" else "MFW (CIFAR-100)" if data == "cifar100" else "MFW"


def _cifar_row(name: str, data: str, shape: str, ratio: int) -> dict[str, Any]:
    if name.startswith("MFW"):
        return {"preset": name.replace("MFW", _weakening(data, shape), 1), **LONGER}
    if name == "CB":  # with step imbalance the paper quotes LDAM's, which weighs cross-entropy and has one β
        return {"preset": f"CB ({TITLES[data]}, ratio {ratio})" if shape == "long_tailed" else "CB Softmax"}
    own = {
        "Focal": {"loss": "focal(gamma=1.0)"},  # LDAM's baseline: of the softmax
        "τ-norm": {"posthoc": "tau_norm(tau=1.0)"},
        "De-confound-TDE": {"head": f"causal(alpha={1.0 if data == 'cifar10' else 1.5})"},
    }
    return own.get(name, {"preset": name})


def _table1(column: int) -> StudyFile:
    data, shape, ratio = CIFAR[column]
    printed = {name: numbers[column] for name, numbers in table(TABLE1).items()}
    rows = {n: Row(_cifar_row(n, data, shape, ratio), p) for n, p in printed.items() if p != "-"}
    return _cifar_study(
        f"table1_{data}_{shape}_ratio{ratio}",
        f"table 1: {WORDS[shape]} {TITLES[data]}, ratio {ratio}",
        (data, shape, ratio),
        rows,
        (
            "most rows of other papers are quoted there and had trainings of their own; here all share one, of 200 "
            "epochs with a cosine schedule",
            "τ = 1 and CDT's γ = 0.2 are not tuned",
            "the rows with meta-learning take balanced batches from the training images, where their papers hold out "
            "10 images of each class",
            *READING,
        ),
    )


def _cifar_study(
    name: str,
    place: str,
    choice: tuple[str, str, float],
    rows: Mapping[str, Row],
    differs: tuple[str, ...] = READING,
    question: str = "what beats plain training?",
    **more: Any,
) -> StudyFile:
    data, shape, ratio = choice
    return StudyFile(
        name=f"{PREFIX}_{name}",
        source=f"{PAPER}, {place}.",
        question=f"On {WORDS[shape]} {TITLES[data]}, ratio {ratio}, {question}",
        task={"name": data, "imbalance": shape, "ratio": ratio, "valid": 0},
        base=TRAINING,
        rows=rows,
        images=cifar_images(data, shape, ratio),
        differs=differs,
        **more,
    )


# -- tables 5 to 8, figure 10: CIFAR at ratio 100 and above ------------------------------------------------------------

SHAPES = [(data, shape) for data in TITLES for shape in WORDS]  # the columns of tables 5, 6 and 8
TABLE5 = """
    ERM               | 71.1 65.8 40.1 39.9
    MFW (input layer) | 76.3 68.1 41.2 43.1
    MFW (1st group)   | 77.3 72.4 42.3 44.3
    MFW (2nd group)   | 78.5 80.1 44.7 46.9
    MFW (3rd group)   | 77.1 69.8 43.1 46.3
    MFW (4th group)   | 75.0 67.4 40.3 42.2
"""
SITES = ("input", "stem", "stage1", "stage2", "stage3")
TABLE6 = """
    α = 0.1 | 75.9 73.3 43.1 40.8
    α = 0.2 | 76.8 74.3 44.7 42.6
    α = 0.5 | 77.1 75.2 43.6 44.0
    α = 1   | 78.5 77.6 42.1 46.5
    α = 5   | 77.4 80.1 41.2 46.9
"""
TABLE7 = """
    ERM        | 64.5 56.5
    CDT        | 66.1 59.0
    MFW        | 65.6 62.0
    MFW w/ DRW | 67.3 63.0
"""
TABLE8 = """
    ERM            | 71.1 65.8 40.1 39.9
    mixup          | 73.1 66.2 39.5 39.8
    manifold mixup | 73.0 65.4 38.3 39.4
    MFW            | 78.5 80.1 44.7 46.9
"""
BETAS = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0)
ALPHA = {("cifar10", "long_tailed"): 1.0, ("cifar100", "long_tailed"): 0.2}  # table 6; 5 with step imbalance


def _mixed(data: str, shape: str, **parameters: Any) -> dict[str, Any]:
    step = {"beta": 0.01} if shape == "step" else {}
    chosen = {"alpha": ALPHA.get((data, shape), 5.0), **step, **parameters}
    return {"mix": f"mfw({', '.join(f'{name}={value!r}' for name, value in chosen.items())})", **LONGER}


def _erm(published: str | None = None) -> dict[str, Row]:
    return {"ERM": Row({"preset": "ERM"}, published)}


def _column(text: str, column: int) -> dict[str, str]:
    return {name: numbers[column] for name, numbers in table(text).items()}


def _at_ratio_100(column: int) -> Iterator[StudyFile]:
    data, shape = SHAPES[column]
    choice, title = (data, shape, 100), f"{WORDS[shape]} {TITLES[data]}, ratio 100"
    erm, *layers = _column(TABLE5, column).items()
    rows = {name: Row(_mixed(data, shape, site=site), p) for (name, p), site in zip(layers, SITES, strict=True)}
    yield _cifar_study(
        f"table5_{data}_{shape}",
        f"table 5: after which group of layers, {title}",
        choice,
        _erm(erm[1]) | rows,
        question="after which layers should features be weakened?",
    )
    alphas = _column(TABLE6, column).items()
    rows = {f"MFW, {name}": Row(_mixed(data, shape, alpha=float(name.split()[-1])), p) for name, p in alphas}
    yield _cifar_study(
        f"table6_{data}_{shape}",
        f"table 6: α of the beta distribution, {title}",
        choice,
        _erm() | rows,
        question="how much does α matter?",
    )
    rows = {name: Row(_cifar_row(name, data, shape, 100), p) for name, p in _column(TABLE8, column).items()}
    yield _cifar_study(
        f"table8_{data}_{shape}",
        f"table 8: mixing with and without the labels, {title}",
        choice,
        rows,
        ("manifold mixup mixes at one layer, where its paper draws the layer for each batch", *READING),
        question="is it the mixing of labels that helps?",
    )
    if data == "cifar10":
        rows = {f"MFW, β = {beta}": Row(_mixed(data, shape, beta=beta)) for beta in BETAS}
        yield _cifar_study(
            f"figure10_{data}_{shape}",
            f"figure 10: softness β of the weights, {title}",
            choice,
            _erm() | rows,
            ("the values of β are ours, as the figure's are not in its text", *READING),
            question="how much does β matter?",
        )


def _table7() -> Iterator[StudyFile]:
    for column, ratio in enumerate((500, 1000)):
        printed = _column(TABLE7, column).items()
        rows = {name: Row(_cifar_row(name, "cifar10", "long_tailed", ratio), p) for name, p in printed}
        choice = ("cifar10", "long_tailed", ratio)
        yield _cifar_study(f"table7_ratio{ratio}", f"table 7: long-tailed CIFAR-10, ratio {ratio}", choice, rows)


# -- figures of the training's progress, appendix D.8 ------------------------------------------------------------------


def _progress() -> Iterator[StudyFile]:
    for shape in WORDS:
        rows = {name: Row(_cifar_row(name, "cifar10", shape, 100)) for name in ("ERM", "MFW")}
        yield _cifar_study(
            f"figures_cifar10_{shape}",
            f"figures {'1, 3, 4, 7, 8 and 9' if shape == 'long_tailed' else '7, 9 and 11'}: what happens to frequent "
            f"and rare classes while {WORDS[shape]} CIFAR-10 of ratio 100 is learned",
            ("cifar10", shape, 100),
            rows,
            question="does weakening frequent classes even out the progress of all?",
            progress=True,
        )


def _in_the_plane() -> StudyFile:
    weakened = "mfw(alpha=2.0, beta=0.01)"  # at this β s is 0.5 for the frequent and 0 for the rare classes
    return StudyFile(
        name=f"{PREFIX}_figures5_6_four_classes",
        source=f"{PAPER}, figures 5 and 6 and section 4: four classes of CIFAR-10, two frequent, two rare, as points "
        "in the plane. Write their images as PNG files into cifar10_four_classes/train/CLASS and /test/CLASS where "
        "data is looked for; the first two by name are the frequent ones.",
        question="With features in the plane, does weakening frequent classes keep training and test images together?",
        task={
            "name": "folder(path='cifar10_four_classes', size=32)",
            "imbalance": "step",
            "ratio": 100,
            "valid": 0,
        },
        base={**TRAINING, "warmup": 0, "augment": "crop_flip(pad=4)", "head": "planar"},
        rows={"ERM": Row({"preset": "ERM"}, "78.30"), "MFW": Row({"mix": weakened}, "83.65")},
        images=10_100,
        differs=("the paper does not say which four classes it took", "bf16"),
        progress=True,
    )


def _stronger_augmentation() -> StudyFile:
    augment = {"augment": "autoaugment(policy='cifar10')"}
    mfw = {"preset": "MFW (CIFAR-100) w/ DRW", **LONGER, **augment}
    return _cifar_study(
        "section_d8_cifar100_long_tailed_ratio200",
        "appendix D.8: long-tailed CIFAR-100 of ratio 200 with the augmentation of equalization loss",
        ("cifar100", "long_tailed", 200),
        {
            "ERM": Row({"preset": "ERM", **augment}),
            "SEQL": Row({"preset": "SEQL", **augment}, "43.4"),
            "MFW w/ DRW": Row(mfw, "47.8"),
        },
        ("the paper does not say which of its two methods has this number", "AutoAugment without Cutout", *READING),
    )


# -- tables 2, 3, 4 and 9: larger images -------------------------------------------------------------------------------

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
        return {"preset": name.replace("MFW", _weakening("cifar100", shape), 1)}
    return {"preset": name} if name != "τ-norm" else {"posthoc": "tau_norm(tau=1.0)"}


def _table2(column: int) -> StudyFile:
    shape, ratio = TINY[column]
    rows = {}
    for name, numbers in table(TABLE2).items():
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
    rows = {name: Row(_large_row(name, "step", 512), _printed(*numbers)) for name, numbers in table(TABLE3).items()}
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
    for name, numbers in table(TABLE4).items():
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
    rows |= {n: Row(_large_row(n, "long_tailed", 256), numbers[0]) for n, numbers in table(TABLE9[model]).items()}
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
    yield from (_table1(column) for column in range(len(CIFAR)))
    for column in range(len(SHAPES)):
        yield from _at_ratio_100(column)
    yield from _table7()
    yield from _progress()
    yield _in_the_plane()
    yield _stronger_augmentation()
    yield from (_table2(column) for column in range(len(TINY)))
    yield _table3()
    yield from (_table4(epochs) for epochs in (90, 180))
    yield from (_table9(*network) for network in (("resnet10", "ResNet-10"), ("resnext50", "ResNeXt-50")))
