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


# -- class-balanced loss (Cui et al. 2019), table 2; beta and gamma as for CIFAR-10 of ratio 100 -----------------------

_CLASS_BALANCED = {
    "Softmax": {"loss": "cross_entropy"},
    "Sigmoid": {"loss": "sigmoid", "head": "linear(prior='others')"},
    "Focal": {"loss": "sigmoid_focal(gamma=1.0)"},
    "CB Softmax": {"loss": "cross_entropy", "weighting": "effective_number(beta=0.9999)"},
    "CB Sigmoid": {
        "loss": "sigmoid",
        "head": "linear(prior='others')",
        "weighting": "effective_number(beta=0.9999)",
    },
    "CB Focal": {"loss": "sigmoid_focal(gamma=1.0)", "weighting": "effective_number(beta=0.9999)"},
}

# -- major feature weakening (Ye et al. 2021), tables 1, 3, 5, 8 and the methods named in its text ---------------------

_FEATURE_WEAKENING = {
    "ERM": {"loss": "cross_entropy"},
    "CB": {"loss": "sigmoid_focal(gamma=1.0)", "weighting": "effective_number(beta=0.9999)"},
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
    "mixup": {"mix": "mixup"},
    "manifold mixup": {"mix": "manifold_mixup"},
    "SEQL": {"loss": "equalization"},
    "MFW": {"mix": "mfw(alpha=1.0)"},
    "MFW w/ DRW": {"mix": "mfw(alpha=1.0)", "weighting": DRW},
    "MFW (step)": {"mix": "mfw(alpha=5.0, beta=0.01)"},
    "MFW (step) w/ DRW": {"mix": "mfw(alpha=5.0, beta=0.01)", "weighting": DRW},
    "Balanced softmax": {"loss": "balanced_softmax"},
    "Logit adjustment (loss)": {"loss": "logit_adjusted"},
    "Logit adjustment (post-hoc)": {"posthoc": "logit_adjust"},
}

# -- bias loss (Abrahamyan et al. 2021), supplement, table 2 -----------------------------------------------------------

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
    "Batch norm": {"norm": "batch", "affine_decay": False},
    "Inference example weighing": {"norm": "batch", "affine_decay": False, "posthoc": "example_weighing"},
    "Ghost batch norm": {"norm": "ghost(ghost_size=16)", "affine_decay": False},
    "Decay of gamma and beta": {"norm": "batch", "affine_decay": True},
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
    "sigmoid": _objective(0, -3.75, loss="sigmoid"),
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

# -- trainings, for [base] ---------------------------------------------------------------------------------------------

_TRAININGS = {
    "training: class-balanced CIFAR": {
        "model": "resnet32",
        "epochs": 200,
        "batch_size": 128,
        "lr": 0.1,
        "weight_decay": 2e-4,
        "warmup": 5,
        "schedule": "steps(at=(0.8, 0.9), factor=0.01)",
    },
    "training: MFW CIFAR": {
        "model": "resnet32",
        "epochs": 300,
        "batch_size": 128,
        "lr": 0.1,
        "weight_decay": 2e-4,
        "warmup": 5,
        "schedule": "cosine",
    },
    "training: objectives CIFAR-10": {"model": "allcnnc", "batch_size": 128, "affine_decay": False, "warmup": 0},
    "training: objectives CIFAR-100": {"model": "wrn_16_8", "batch_size": 256, "affine_decay": True, "warmup": 0},
    "training: objectives ImageNet": {
        "model": "resnet50",
        "epochs": 200,
        "batch_size": 4096,
        "lr": 1.6,
        "nesterov": True,
        "weight_decay": 8e-5,
        "affine_decay": False,
        "warmup": 10,
        "schedule": "exponential(factor=0.975)",
        "ema": 0.9999,
    },
    "training: bias loss CIFAR-100": {
        "epochs": 200,
        "batch_size": 128,
        "lr": 0.1,
        "weight_decay": 5e-4,
        "warmup": 0,
        "schedule": "steps(at=(0.3, 0.6, 0.8), factor=0.2)",
    },
}


def _all() -> Iterator[Preset]:
    for source, rows in (
        ("Class-balanced loss, table 2", _CLASS_BALANCED),
        ("Major feature weakening, tables 1, 3 and 8", _FEATURE_WEAKENING),
        ("Bias loss, supplement", _BIAS),
        ("Four things about batch norm", _FOUR_THINGS),
        ("training plans of the papers", _TRAININGS),
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
