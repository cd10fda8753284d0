"""Procrustean Training for Imbalanced Deep Learning (major feature weakening, MFW): the tables on CIFAR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .study_file import Row, StudyFile, cifar_images, published

PREFIX = "mfw"
PAPER = "Major feature weakening (Ye, Zhan, Chao, ICCV 2021)"
TITLES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
WORDS = {"long_tailed": "long-tailed", "step": "step-imbalanced"}
LONGER = {"epochs": 300}  # footnote 9: MFW needs more epochs than the 200 of its baselines
TRAINING = {"preset": "training: MFW CIFAR", "epochs": 200, "precision": "bf16"}

PUBLISHED = published(PREFIX)

READING = (
    "the spread γ of the weakening is read as exp(std(log N)), as the paper does not say which it means "
    "(docs/methods/mfw.md)",
    "bf16",
    "the paper gives no number of seeds",
)

UNPRINTED = "α is that of ratio 100, as the choice for other ratios is not printed"

# -- table 1 -----------------------------------------------------------------------------------------------------------

RATIOS = (200, 100, 10)
CIFAR = [(data, shape, ratio) for data in TITLES for shape in WORDS for ratio in RATIOS]


def weakening(data: str, shape: str) -> str:
    """The preset with the α of table 6 and the β of appendix C.2."""
    return "MFW (step)" if shape == "step" else "MFW (CIFAR-100)" if data == "cifar100" else "MFW"


def _cifar_row(name: str, data: str, shape: str, ratio: int) -> dict[str, Any]:
    if name.startswith("MFW"):
        return {"preset": name.replace("MFW", weakening(data, shape), 1), **LONGER}
    if name == "CB":  # with step imbalance the paper quotes LDAM's, which weighs cross-entropy and has one β
        return {"preset": f"CB ({TITLES[data]}, ratio {ratio})" if shape == "long_tailed" else "CB Softmax"}
    own = {
        "Focal": {"loss": "focal(gamma=1.0)"},  # LDAM's baseline: of the softmax
        "τ-norm": {"posthoc": "tau_norm(tau=1.0)"},
        "De-confound-TDE": {"head": f"causal(alpha={1.0 if data == 'cifar10' else 1.5})"},
    }
    return own.get(name, {"preset": name})


def _table1(data: str, shape: str, ratio: int) -> StudyFile:
    name = f"table1_{data}_{shape}_ratio{ratio}"
    return _cifar_study(
        name,
        f"table 1: {WORDS[shape]} {TITLES[data]}, ratio {ratio}",
        (data, shape, ratio),
        {method: Row(_cifar_row(method, data, shape, ratio), p) for method, p in _printed(name).items()},
        (
            "most rows of other papers are quoted there and had trainings of their own; here all share one, of 200 "
            "epochs with a cosine schedule",
            "τ = 1 and CDT's γ = 0.2 are not tuned",
            *([] if ratio == 100 else [UNPRINTED]),
            "the rows with meta-learning take balanced batches from the training images, where their papers hold out "
            "10 images of each class",
            *READING,
        ),
    )


def _printed(name: str) -> dict[str, str]:
    """Method -> what the paper prints for it in this study."""
    return PUBLISHED[f"{PREFIX}_{name}"]


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

SHAPES = [(data, shape) for data in TITLES for shape in WORDS]
SITES = ("input", "stem", "stage1", "stage2", "stage3")
BETAS = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0)
ALPHA = {("cifar10", "long_tailed"): 1.0, ("cifar100", "long_tailed"): 0.2}  # table 6; 5 with step imbalance


def _mixed(data: str, shape: str, **parameters: Any) -> dict[str, Any]:
    step = {"beta": 0.01} if shape == "step" else {}
    chosen = {"alpha": ALPHA.get((data, shape), 5.0), **step, **parameters}
    return {"mix": f"mfw({', '.join(f'{name}={value!r}' for name, value in chosen.items())})", **LONGER}


def _erm(published: str | None = None) -> dict[str, Row]:
    return {"ERM": Row({"preset": "ERM"}, published)}


def _title(data: str, shape: str) -> str:
    return f"{WORDS[shape]} {TITLES[data]}, ratio 100"


def _table5(data: str, shape: str) -> StudyFile:
    name = f"table5_{data}_{shape}"
    erm, *layers = _printed(name).items()
    rows = {method: Row(_mixed(data, shape, site=site), p) for (method, p), site in zip(layers, SITES, strict=True)}
    return _cifar_study(
        name,
        f"table 5: after which group of layers, {_title(data, shape)}",
        (data, shape, 100),
        _erm(erm[1]) | rows,
        question="after which layers should features be weakened?",
    )


def _table6(data: str, shape: str) -> StudyFile:
    name = f"table6_{data}_{shape}"
    printed = _printed(name).items()
    rows = {method: Row(_mixed(data, shape, alpha=float(method.split()[-1])), p) for method, p in printed}
    return _cifar_study(
        name,
        f"table 6: α of the beta distribution, {_title(data, shape)}",
        (data, shape, 100),
        _erm() | rows,
        question="how much does α matter?",
    )


def _table8(data: str, shape: str) -> StudyFile:
    name = f"table8_{data}_{shape}"
    return _cifar_study(
        name,
        f"table 8: mixing with and without the labels, {_title(data, shape)}",
        (data, shape, 100),
        {method: Row(_cifar_row(method, data, shape, 100), p) for method, p in _printed(name).items()},
        ("manifold mixup mixes at one layer, where its paper draws the layer for each batch", *READING),
        question="is it the mixing of labels that helps?",
    )


def _figure10(shape: str) -> StudyFile:
    rows = {f"MFW, β = {beta}": Row(_mixed("cifar10", shape, beta=beta)) for beta in BETAS}
    return _cifar_study(
        f"figure10_cifar10_{shape}",
        f"figure 10: softness β of the weights, {_title('cifar10', shape)}",
        ("cifar10", shape, 100),
        _erm() | rows,
        ("the values of β are ours, as the figure's are not in its text", *READING),
        question="how much does β matter?",
    )


def _table7() -> Iterator[StudyFile]:
    for ratio in (500, 1000):
        name, choice = f"table7_ratio{ratio}", ("cifar10", "long_tailed", ratio)
        rows = {method: Row(_cifar_row(method, *choice), p) for method, p in _printed(name).items()}
        yield _cifar_study(name, f"table 7: long-tailed CIFAR-10, ratio {ratio}", choice, rows, (UNPRINTED, *READING))


# -- figures of the training's progress, appendices D.2, D.8 and D.10 --------------------------------------------------


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
    augment = {"augment": "autoaugment(policy='cifar10', cutout=16)"}
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
        (
            "the paper does not say which of its two methods has this number",
            "that equalization loss has Cutout behind AutoAugment was not read in its paper",
            *READING,
        ),
    )


def _weights_elsewhere(shape: str) -> StudyFile:
    beta = 0.01 if shape == "step" else 2.0
    rows = {name: Row(_cifar_row(name, "cifar10", shape, 100)) for name in ("ERM", "mixup", "Remix", "MFW")}
    weighed = {f"{name}, equation 12": Row({"mix": f"{name.lower()}(beta={beta})"}) for name in ("mixup", "Remix")}
    return _cifar_study(
        f"section_d2_cifar10_{shape}",
        f"appendix D.2: the weights of equation 12 in mixup and Remix, {_title('cifar10', shape)}",
        ("cifar10", shape, 100),
        rows | weighed,
        (
            "the paper says that the weights bring no improvement there, without numbers, data sets or how they enter; "
            "here they are multiplied by the partner's share, as in MFW",
            *READING,
        ),
        question="do the weights of feature weakening help mixup and Remix?",
    )


def _other_network(ratio: int) -> StudyFile:
    name, choice = f"section_d10_ratio{ratio}", ("cifar10", "long_tailed", ratio)
    rows = {method: Row(_cifar_row(method, *choice), p) for method, p in _printed(name).items()}
    return _cifar_study(
        name,
        f"appendix D.10: DenseNet-121 on long-tailed CIFAR-10, ratio {ratio}",
        choice,
        {method: Row({**row.options, "model": "densenet121"}, row.published) for method, row in rows.items()},
        (
            "the paper names the network alone: its stem is the one for small images here",
            "α is that of ResNet-32 at ratio 100, as the choice for others is not printed",
            *READING,
        ),
    )


def studies() -> Iterator[StudyFile]:
    yield from (_table1(*choice) for choice in CIFAR)
    for data, shape in SHAPES:
        yield from (make(data, shape) for make in (_table5, _table6, _table8))
    yield from (_figure10(shape) for shape in WORDS)
    yield from _table7()
    yield from _progress()
    yield _in_the_plane()
    yield from (_weights_elsewhere(shape) for shape in WORDS)
    yield _stronger_augmentation()
    yield from (_other_network(ratio) for ratio in RATIOS)
