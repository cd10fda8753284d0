"""Rows of the papers' tables by their names there: `preset = "LDAM-DRW"` in a study stands for these options.

A preset sets only what makes the row what it is; data, network and length of training stay those of the study, but for
the objectives on ImageNet, of which each has its own epoch to stop at. The trainings of the papers are presets too, for
a study's [base].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..core import known

DRW = "effective_number(beta=0.9999, start=0.8, normalize='batch')"


@dataclass(frozen=True)
class Preset:
    """A row of a table: its name, where it stands, and the options it means."""

    name: str
    source: str
    options: Mapping[str, Any]


# -- class-balanced loss (Cui et al. 2019) -----------------------------------------------------------------------------

_LOSSES: dict[str, dict[str, Any]] = {
    "Softmax": {"loss": "cross_entropy"},
    "Sigmoid": {"loss": "sigmoid", "head": "linear(prior='others')"},
    "Focal": {"loss": "sigmoid_focal(gamma=1.0)"},
}


def _class_balanced(loss: str, beta: float, gamma: float = 1.0) -> dict[str, Any]:
    focal = {"loss": f"sigmoid_focal(gamma={gamma})"} if loss == "Focal" else {}
    return {**_LOSSES[loss], **focal, "weighting": f"effective_number(beta={beta})"}


# 0.9999 is the best β on CIFAR-10 at every ratio; on CIFAR-100 it is far too large (figure 5)
_CLASS_BALANCED_CIFAR10 = _LOSSES | {f"CB {loss}": _class_balanced(loss, 0.9999) for loss in _LOSSES}

# table 2, the last rows: the best loss, β and γ for each data set and ratio
_CLASS_BALANCED_BEST = {
    "CB (CIFAR-10, ratio 200)": _class_balanced("Softmax", 0.9999),
    "CB (CIFAR-10, ratio 100)": _class_balanced("Focal", 0.9999, 1.0),
    "CB (CIFAR-10, ratio 50)": _class_balanced("Focal", 0.9999, 2.0),
    "CB (CIFAR-10, ratio 20)": _class_balanced("Softmax", 0.9999),
    "CB (CIFAR-10, ratio 10)": _class_balanced("Sigmoid", 0.9999),
    "CB (CIFAR-100, ratio 200)": _class_balanced("Focal", 0.9, 1.0),
    "CB (CIFAR-100, ratio 100)": _class_balanced("Focal", 0.9, 1.0),
    "CB (CIFAR-100, ratio 50)": _class_balanced("Sigmoid", 0.99),
    "CB (CIFAR-100, ratio 20)": _class_balanced("Focal", 0.99, 0.5),
    "CB (CIFAR-100, ratio 10)": _class_balanced("Focal", 0.999, 0.5),
}
# table 3; the focal loss is smaller than the others, so its rate is 4 times theirs on iNaturalist, twice on ImageNet
_CLASS_BALANCED_LARGE = {
    "CB Focal (iNaturalist)": {**_class_balanced("Focal", 0.999, 0.5), "lr": 1.6},
    "CB Focal (ImageNet)": {**_class_balanced("Focal", 0.999, 0.5), "lr": 0.8},
}

# -- major feature weakening (Ye et al. 2021), tables 1 to 9 and the methods named in its text -------------------------


def _weakening(**parameters: float) -> str:
    return f"mfw({', '.join(f'{name}={value}' for name, value in parameters.items())})"


_FEATURE_WEAKENING = {
    "ERM": {"loss": "cross_entropy"},
    "LDAM": {"loss": "ldam"},
    "LDAM-DRW": {"loss": "ldam", "weighting": DRW},
    "τ-norm": {"posthoc": "tau_norm"},
    "cRT": {"stage": "crt"},
    "LWS": {"stage": "lws"},
    "CDT": {"loss": "cdt"},
    "BBN": {"procedure": "bbn"},
    "M2m": {"procedure": "m2m"},
    "Meta-Weight": {"procedure": "meta_weight_net"},
    "DA": {"procedure": "domain_adaptation"},
    "OLTR": {"procedure": "oltr"},
    "Remix": {"mix": "remix"},
    "Remix-DRW": {"mix": "remix", "weighting": DRW},
    "De-confound-TDE": {"head": "causal"},
    "mixup": {"mix": "mixup(per_batch=True)"},
    "manifold mixup": {"mix": "manifold_mixup(per_batch=True)"},
    "SEQL": {"loss": "equalization"},
    "Balanced softmax": {"loss": "balanced_softmax"},
    "Logit adjustment (loss)": {"loss": "logit_adjusted"},
    "Logit adjustment (post-hoc)": {"posthoc": "logit_adjust"},
}
# table 6: the best α, which differs by data set; β as in appendix C.2
_WEAKENED = {
    "MFW": _weakening(alpha=1.0),
    "MFW (CIFAR-100)": _weakening(alpha=0.2),
    "MFW (step)": _weakening(alpha=5.0, beta=0.01),
}
_FEATURE_WEAKENING |= {name: {"mix": mix} for name, mix in _WEAKENED.items()}
_FEATURE_WEAKENING |= {f"{name} w/ DRW": {"mix": mix, "weighting": DRW} for name, mix in _WEAKENED.items()}

# -- bias loss (Abrahamyan et al. 2021), supplement --------------------------------------------------------------------

_BIAS = {
    "Bias loss": {"weighting": "bias"},
    "Bias loss (inverse)": {"weighting": "bias(inverse=True)"},
    "Bias loss (mean)": {"weighting": "bias(statistic='mean')"},
    "Bias loss (mean and variance)": {"weighting": "bias(statistic='product')"},
    "Bias loss (released)": {"weighting": "bias(scaling='running')"},
    "Bias loss (before 2022)": {"weighting": "bias(scaling='running', legacy=True)"},
}

# -- four things about batch norm (Summers and Dinneen 2020) -----------------------------------------------------------

_FOUR_THINGS: dict[str, dict[str, Any]] = {
    # the moving averages of the authors' layers keep 0.99, ours and PyTorch's 0.9
    "Batch norm": {"norm": "batch(momentum=0.01)", "affine_decay": False},
    "Inference example weighing": {
        "norm": "batch(momentum=0.01)",
        "affine_decay": False,
        "posthoc": "example_weighing",
    },
    "Ghost batch norm": {"norm": "ghost(ghost_size=16)", "affine_decay": False},
    "Decay of gamma and beta": {"norm": "batch(momentum=0.01)", "affine_decay": True},
    "Batch-group norm": {"norm": "batch_group", "affine_decay": False},
    "All four things": {"norm": "ghost(ghost_size=16)", "affine_decay": True, "posthoc": "example_weighing"},
    "All four things (batches of 2)": {"norm": "batch_group", "affine_decay": True, "posthoc": "example_weighing"},
    "Batch renorm": {"norm": "batch_renorm", "affine_decay": False},
    "Group norm": {"norm": "group", "affine_decay": False},
    "Non-i.i.d. batches": {"sampler": "non_iid(classes=4)"},
}


# -- the nine objectives of the loss functions study (Kornblith et al. 2021) -------------------------------------------


def _objective(eta: float, lam: float, **options: Any) -> dict[str, Any]:
    """The paper tabulates λ = η · decay, both as powers of ten here; PyTorch's decay is λ / η."""
    return {"lr": 10**eta, "weight_decay": 10 ** (lam - eta), "nesterov": True, **options}


_CIFAR10_OBJECTIVES = {
    "softmax": _objective(-0.75, -3.75, loss="cross_entropy"),
    "label smoothing": _objective(-1, -3.75, loss="label_smoothing(alpha=0.04)"),
    "dropout": _objective(-1, -3.75, head="dropout(keep=0.65)"),
    # λ_final is taken for a product with η too: the table gives it the same hat
    "extra final layer L2": _objective(-1, -3.5, final_decay=10 ** (-1.5 + 1)),
    "logit penalty": _objective(-0.75, -3.75, penalty=f"logit_penalty(beta={10**-2.83:.6g})"),
    "logit normalization": _objective(-2, -4, loss="logit_norm(tau=0.14)"),
    "cosine softmax": _objective(-2.25, -4, head="cosine(tau=0.08)"),
    # "1" with a smudge before it in our copy; at 1 some runs learn nothing (docs/results/README.md)
    "sigmoid": _objective(-1, -3.75, loss="sigmoid"),
    "squared error": _objective(-1, -3.5, loss="squared_error(kappa=8.0, magnitude=0.83)"),
}
_CIFAR100_OBJECTIVES = {
    "softmax": _objective(-1, -4, loss="cross_entropy"),
    "label smoothing": _objective(-1, -3.5, loss="label_smoothing(alpha=0.18)"),
    "dropout": _objective(-1.25, -3.75, head="dropout(keep=0.75)"),
    "extra final layer L2": _objective(-1, -3.75, final_decay=10 ** (-3.33 + 1)),
    "logit penalty": _objective(-1.25, -3.75, penalty=f"logit_penalty(beta={10**-2.83:.6g})"),
    "logit normalization": _objective(-2.25, -3.75, loss="logit_norm(tau=0.11)"),
    "cosine softmax": _objective(-2, -3.75, head="cosine(tau=0.1)"),
    "sigmoid": _objective(-1, -3.75, loss="sigmoid"),
    "squared error": _objective(-1, -3.75, loss="squared_error(kappa=6.0, magnitude=12.0)"),
}
# each objective is trained to the epoch that the paper chose on held-out images (its table A.1); the schedule of
# "training: objectives ImageNet" does not depend on the length
_IMAGENET_OBJECTIVES: dict[str, dict[str, Any]] = {
    "softmax": {"epochs": 146, "loss": "cross_entropy"},
    "label smoothing": {"epochs": 180, "loss": "label_smoothing(alpha=0.1)"},
    "dropout": {"epochs": 172, "head": "dropout(keep=0.7)"},
    "extra final layer L2": {"epochs": 168, "final_decay": 8e-4},
    # the selected 6e-4 is in the convention of the released code, with its factor of a half
    "logit penalty": {"epochs": 180, "penalty": "logit_penalty(beta=6e-4, half=True)"},
    "logit normalization": {"epochs": 152, "loss": "logit_norm(tau=0.04)"},
    "cosine softmax": {"epochs": 158, "head": "cosine(tau=0.05)"},
    "sigmoid": {"epochs": 166, "loss": "sigmoid"},
    "squared error": {"epochs": 196, "loss": "squared_error(kappa=9.0, magnitude=60.0, loss_scale=10.0)"},
}

# -- ours: what a search over the dials of several papers chose (docs/results/combination.md) --------------------------

_COMBINED = {
    "equipoise_long_tail": {"loss": "balanced_softmax", "mix": "cutmix", "procedure": "mutual(networks=2)"},
    # where classes have fewer than some 20 images, which CutMix fails
    "equipoise_rare_classes": {
        "loss": "balanced_softmax",
        "head": "cosine(tau=0.05)",
        "procedure": "mutual(networks=3)",
        "augment": "autoaugment(policy='cifar10', cutout=16)",
    },
}

# -- trainings, for [base] ---------------------------------------------------------------------------------------------


def _at(epochs: int, *decays: int, factor: float) -> str:
    """Steps after so many of all epochs."""
    return f"steps(at=({', '.join(str(decay / epochs) for decay in decays)}), factor={factor})"


_TRAININGS: dict[str, dict[str, Any]] = {
    "training: class-balanced CIFAR": {
        "model": "resnet32",
        "epochs": 200,
        "batch_size": 128,
        "lr": 0.1,
        "weight_decay": 2e-4,
        "warmup": 5,
        "schedule": "steps(at=(0.8, 0.9), factor=0.01)",
    },
    # section 5.2: as Goyal et al. (2017), whose rate is 0.1 for a batch of 256
    "training: class-balanced ImageNet": {
        "model": "resnet(depth=50, zero_gamma=True)",
        "epochs": 90,
        "batch_size": 1024,
        "lr": 0.4,
        "nesterov": True,
        "weight_decay": 1e-4,
        "affine_decay": False,
        "warmup": 5,
        "schedule": _at(90, 30, 60, 80, factor=0.1),
        "augment": "resized_crop(area=(0.08, 1.0))",
    },
    # for MFW itself; its baselines have 200 epochs
    "training: MFW CIFAR": {
        "model": "resnet32",
        "epochs": 300,
        "batch_size": 128,
        "lr": 0.1,
        "weight_decay": 2e-4,
        "warmup": 5,
        "schedule": "cosine",
    },
    # appendix C.4 to C.7 give no weight decay: these are of the code that each section says it follows
    "training: MFW Tiny-ImageNet": {
        "model": "resnet18",
        "epochs": 200,
        "batch_size": 128,
        "lr": 0.1,
        "weight_decay": 2e-4,
        "warmup": 0,
        "schedule": "cosine",
        "augment": "crop_flip(pad=8)",
    },
    "training: MFW Tiered-ImageNet": {
        "model": "resnet12",
        "epochs": 180,
        "batch_size": 512,
        "lr": 0.2,
        "weight_decay": 5e-4,
        "warmup": 0,
        "schedule": "cosine",
        "augment": "crop_flip(pad=8)",
    },
    "training: MFW ImageNet-LT": {
        "epochs": 200,
        "batch_size": 256,
        "lr": 0.1,
        "weight_decay": 5e-4,
        "warmup": 0,
        "schedule": "cosine",
    },
    "training: MFW iNaturalist": {
        "model": "resnet50",
        "epochs": 90,
        "batch_size": 128,
        "lr": 0.05,
        "weight_decay": 1e-4,
        "warmup": 0,
        "schedule": _at(90, 60, 80, factor=0.1),
    },
    # the appendix gives no number of epochs for CIFAR
    "training: objectives CIFAR-10": {
        "model": "allcnnc",
        "epochs": 100,
        "batch_size": 128,
        "affine_decay": False,
        "warmup": 0,
    },
    "training: objectives CIFAR-100": {
        "model": "wrn_16_8",
        "epochs": 100,
        "batch_size": 256,
        "affine_decay": True,
        "warmup": 0,
    },
    "training: objectives ImageNet": {
        "model": "resnet(depth=50, zero_gamma=True)",
        "epochs": 200,
        "batch_size": 4096,
        "lr": 1.6,
        "nesterov": True,
        "weight_decay": 8e-5,
        "affine_decay": False,
        "warmup": 10,
        "schedule": "exponential(factor=0.975)",
        "ema": 0.9999,
        "augment": "resized_crop(area=(0.1, 1.0), mode='bicubic')",
    },
    # the supplement gives neither batch size, epochs, warm-up nor shifts: those of public code for CIFAR-100
    # (weiaicunzai/pytorch-cifar100), whose accuracies the supplement has for cross-entropy, cut to one decimal
    "training: bias loss CIFAR-100": {
        "epochs": 200,
        "batch_size": 128,
        "lr": 0.1,
        "weight_decay": 5e-4,
        "warmup": 1,
        "schedule": _at(200, 60, 120, 160, factor=0.2),
        "augment": "rotation(degrees=15.0, flip=True, pad=4)",
    },
    # the supplement gives no weight decay: the released code's
    "training: bias loss Tiny-ImageNet": {
        "epochs": 90,
        "batch_size": 128,
        "lr": 0.01,
        "weight_decay": 1e-4,
        "warmup": 0,
        "schedule": _at(90, 30, 60, factor=0.1),
    },
    # ours: strong augmentation, and as long as it takes there
    "training: equipoise_long_tail CIFAR": {
        "model": "resnet32",
        "epochs": 400,
        "batch_size": 128,
        "lr": 0.1,
        "weight_decay": 5e-4,
        "warmup": 5,
        "schedule": "cosine",
        "ema": 0.999,
        "augment": "autoaugment(policy='cifar10')",
    },
    # section 4.1 gives the network and the batch size; the rest is the usual training of this network
    "training: four things CIFAR-100": {
        "model": "resnet18",
        "epochs": 100,
        "batch_size": 128,
        "lr": 0.1,
        "weight_decay": 5e-4,
        "warmup": 5,
        "schedule": "cosine",
    },
}


def _all() -> Iterator[Preset]:
    for source, rows in (
        ("Class-balanced loss, table 2, with the β of CIFAR-10", _CLASS_BALANCED_CIFAR10),
        ("Class-balanced loss, table 2, the best on each data set", _CLASS_BALANCED_BEST),
        ("Class-balanced loss, table 3", _CLASS_BALANCED_LARGE),
        ("Major feature weakening, tables 1 to 9", _FEATURE_WEAKENING),
        ("Bias loss, supplement, table 2", _BIAS),
        ("Four things about batch norm", _FOUR_THINGS),
        ("a combination of ours", _COMBINED),
        ("trainings, of the papers and ours", _TRAININGS),
    ):
        yield from (Preset(name, source, options) for name, options in rows.items())
    for data, rows in (
        ("CIFAR-10", _CIFAR10_OBJECTIVES),
        ("CIFAR-100", _CIFAR100_OBJECTIVES),
        ("ImageNet", _IMAGENET_OBJECTIVES),
    ):
        for name, options in rows.items():
            yield Preset(f"{name} ({data})", f"What's in a Loss Function, {data}", options)


PRESETS: dict[str, Preset] = {preset.name: preset for preset in _all()}


def expand_preset(options: Mapping[str, Any]) -> dict[str, Any]:
    """`options` with its `preset`, if it names one, replaced by what it means; options beside it win."""
    rest = dict(options)
    name = rest.pop("preset", None)
    if name is None:
        return rest
    return {**PRESETS[known("preset", name, PRESETS)].options, **rest}
