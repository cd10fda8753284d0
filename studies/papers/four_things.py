"""Four Things Everyone Should Know to Improve Batch Normalization."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .study_file import Row, StudyFile, published

PREFIX = "four_things"
PAPER = "Four things about batch normalization (Summers, Dinneen, ICLR 2020)"
PUBLISHED = published(PREFIX)
TUNED = {"posthoc": "example_weighing(metric='accuracy')"}
WEIGHING = ", example weighing"  # how the names of such rows end
FOR_LOSS = {"posthoc": "example_weighing(metric='loss')"}
GHOST_SIZES = (64, 32, 16, 8, 4, 2)
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
UNTOLD = ("the paper gives the network, the batch size and the split; epochs, rate and decay are ours", "bf16")
GROUPS = "norms have 32 groups of channels, a number that the paper tunes"
IN_PROPORTION = "the rate is in proportion to the batch size"


@dataclass(frozen=True)
class Data:
    """A data set with the network and the split of section 4.1."""

    name: str
    title: str
    task: Mapping[str, Any]
    base: Mapping[str, Any]
    images: int

    def study(self, name: str, place: str, question: str, rows: Mapping[str, Row], **more: Any) -> StudyFile:
        base = {**self.base, **more.pop("base", {}), "precision": "bf16"}
        return StudyFile(
            name=f"{PREFIX}_{name}_{self.name}",
            source=f"{PAPER}, {place}: {self.title}.",
            question=f"On {self.title}, {question}",
            task=self.task,
            base=base,
            rows=rows,
            images=self.images,
            differs=(*more.pop("differs", ()), *UNTOLD),
            **more,
        )


TRAINING = "training: four things CIFAR-100"
CIFAR100 = Data("cifar100", "CIFAR-100", {"name": "cifar100", "valid": 0.2}, {"preset": TRAINING}, 40_000)
SVHN = Data("svhn", "SVHN", {"name": "svhn", "valid": 0.2}, {"preset": TRAINING, "epochs": 40}, 483_510)
CALTECH = Data(
    "caltech256",
    "Caltech-256",
    {"name": "caltech256"},
    {"preset": TRAINING, "model": "torchvision/inception_v3", "epochs": 200},
    10_240,
)
FINE_TUNING = {
    "preset": TRAINING,
    "model": "torchvision/resnet152(pretrained=True)",
    "epochs": 100,
    "lr": 0.01,
    "weight_decay": 1e-4,
}
FLOWERS = Data("flowers102", "Flowers-102", {"name": "flowers102"}, FINE_TUNING, 1_020)
CUB = Data("cub200", "CUB-200-2011", {"name": "cub200", "valid": 0.25}, FINE_TUNING, 4_495)


def _with_weighing(name: str, options: Mapping[str, Any], on: str | None = None) -> dict[str, Row]:
    """A norm as it is, and with the example weight that is best on validation data; for this the paper prints `on`."""
    return {name: Row(options), name + WEIGHING: Row({**options, **TUNED}, on)}


def _ghost(size: int) -> dict[str, Any]:
    return {"preset": "Ghost batch norm", "norm": f"ghost(ghost_size={size})"}


# -- section 3 ---------------------------------------------------------------------------------------------------------


def _figures_2_and_8(data: Data) -> StudyFile:
    rows = {
        "Group norm": Row({"preset": "Group norm"}),
        "Group norm, weighing for accuracy": Row({"preset": "Group norm", **TUNED}),
        "Group norm, weighing for loss": Row({"preset": "Group norm", **FOR_LOSS}),
    }
    return data.study(
        "figure2",
        "figures 2 and 8 (`equipoise analyze` draws the curve over α)",
        "do the moving averages help group norm at test time?",
        rows,
        differs=(GROUPS,),
    )


def _figures_3_4_and_9(data: Data) -> StudyFile:
    rows = _with_weighing("Batch norm", {"preset": "Batch norm"})
    for size in GHOST_SIZES:
        rows |= _with_weighing(f"Ghost batch norm, {size}", _ghost(size))
    return data.study(
        "figure3",
        "figures 3, 4 and 9 (`equipoise analyze` draws the curves over α)",
        "which ghost batch size is best, and what does example weighing add?",
        rows,
    )


def _section_3_3(data: Data, name: str = "section3_3", network: str = "", **more: Any) -> StudyFile:
    rows = {
        "Batch norm": Row({"preset": "Batch norm"}),
        "Decay of γ and β to 0": Row({"preset": "Decay of gamma and beta"}),
        "Decay of γ to 1, β to 0": Row({"preset": "Decay of gamma and beta", "affine_towards": 1}),
    }
    return data.study(
        name, f"section 3.3{network and f', with {network}'}", "does decay of γ and β help?", rows, **more
    )


def _section_3_4(data: Data, seeds: int) -> StudyFile:
    printed, rows = PUBLISHED[f"{PREFIX}_section3_4_{data.name}"], {}
    for norm in ("Group norm", "Batch-group norm"):
        rows |= _with_weighing(norm, {"preset": norm}, on=printed[norm + WEIGHING])
    rows["All four things"] = Row({"preset": "All four things (batches of 2)", **TUNED})
    return data.study(
        "section3_4",
        "section 3.4, batches of 2 (the paper's numbers are of the validation set)",
        "batches of 2, does batch-group norm beat group norm?",
        rows,
        base={"batch_size": 2, "lr": _rate(data, 2)},
        differs=(IN_PROPORTION, GROUPS),
        seeds=seeds,
    )


def _rate(data: Data, batch_size: int) -> float:
    """The rate for a batch of 128, in proportion."""
    return float(f"{data.base.get('lr', 0.1) * batch_size / 128:.6g}")


# -- section 4 ---------------------------------------------------------------------------------------------------------


def _figure5(data: Data, published: Mapping[str, str], **more: Any) -> StudyFile:
    rows = {"Batch norm": Row({"preset": "Batch norm"}, published.get("batch"))}
    for size in GHOST_SIZES:
        rows[f"Ghost batch norm, {size}"] = Row(_ghost(size))
    for size in BATCH_SIZES:
        small = {"batch_size": size, "lr": _rate(data, size)} if size < 128 else {}
        rows[f"Group norm, batches of {size}"] = Row({"preset": "Group norm", **small})
        rows[f"Ours, batches of {size}"] = Row({**_ours(size), **small})
    return data.study(
        "figure5",
        f"figure 5{f' ({told})' if (told := published.get('all')) else ''}",
        "do the four things help at every batch size?",
        rows,
        differs=(
            *more.pop("differs", ()),
            IN_PROPORTION,
            GROUPS,
            "ghost batches of 16 serve for all batches of 16 and more, as the paper does not say which it chose",
        ),
        **more,
    )


def _ours(size: int) -> dict[str, Any]:
    """Section 4.2: decay of γ and β at every size, and with it what suits the size."""
    if size == 1:
        return {"preset": "Group norm", "affine_decay": True}
    if size == 2:
        return {"preset": "All four things (batches of 2)", **TUNED}
    return {"preset": "All four things", "norm": f"ghost(ghost_size={min(size, 16)})", **TUNED}


def _table1() -> StudyFile:
    printed, mixed = PUBLISHED[f"{PREFIX}_table1_cifar100"], "Batch-group norm, mixed batches, example weighing"
    rows: dict[str, Row] = {}
    for name in (method for method in printed if not method.endswith(WEIGHING)):
        size = name.partition(", ")[2]
        norm = _ghost(int(size)) if size else {"preset": name}
        rows |= _with_weighing(name, norm, on=printed[name + WEIGHING])
        rows[name] = Row({**norm, "posthoc": "example_weighing(alpha=0.0)"}, printed[name])
    rows[mixed] = Row({"preset": "Batch-group norm", "sampler": "uniform", **TUNED}, printed[mixed])
    return CIFAR100.study(
        "table1",
        "table 1, batches of 128 images of four classes",
        "batches of four classes only, which norm still works?",
        rows,
        base={"sampler": "non_iid(classes=4)"},
        differs=("a batch is shuffled before it is cut into ghost batches, which the paper leaves open", GROUPS),
    )


def _figure6() -> StudyFile:
    data = Data("cifar10", "CIFAR-10", {"name": "cifar10", "valid": 0.2}, {"preset": TRAINING}, 40_000)
    rows = {"Batch norm": Row({"preset": "Batch norm"})}
    rows |= {f"Ghost batch norm, {size}": Row(_ghost(size)) for size in GHOST_SIZES}
    return data.study(
        "figure6",
        "figure 6 (`progress = true` notes how far the outputs of the norms go beyond the bound of training)",
        "do the outputs of norms stay within the bound of training?",
        rows,
        progress=True,
    )


def studies() -> Iterator[StudyFile]:
    for data in (CIFAR100, SVHN, CALTECH):
        yield _figures_2_and_8(data)
        yield _figures_3_4_and_9(data)
    yield _section_3_3(CIFAR100, seeds=10)
    yield _section_3_3(SVHN)
    yield _section_3_3(CALTECH, "section3_3_inception_v3", "Inception-v3", seeds=3)
    yield _section_3_3(CALTECH, "section3_3_resnet50", "ResNet-50", base={"model": "resnet50"}, seeds=3)
    yield _section_3_4(CIFAR100, seeds=3)
    yield _section_3_4(SVHN, seeds=3)
    yield _section_3_4(CALTECH, seeds=2)
    yield _figure5(CIFAR100, {})
    yield _figure5(CALTECH, {})
    pretrained = (
        "group norm starts from weights that were trained with batch norm, which the paper found 5 points worse",
    )
    flowers = "batch norm 91.0, group norm 87.3, all four things 93.4"
    cub = "batch norm 81.1, group norm 78.6, all four things 82.4"
    yield _figure5(FLOWERS, {"all": flowers}, differs=pretrained)
    yield _figure5(CUB, {"all": cub}, differs=pretrained)
    yield _figure6()
    yield _table1()
