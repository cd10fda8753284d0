"""Errors on corrupted and on further test images, as the papers count them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from ...core import checks
from .._arrays import Floats
from .._kinds import Array, either_kind

# AlexNet's top-1 error on ImageNet-C, mean over the five severities, as published with the benchmark
ALEXNET_ERRORS: Mapping[str, float] = {
    "gaussian_noise": 0.886428,
    "shot_noise": 0.894468,
    "impulse_noise": 0.922640,
    "defocus_blur": 0.819880,
    "glass_blur": 0.826268,
    "motion_blur": 0.785948,
    "zoom_blur": 0.798360,
    "snow": 0.866816,
    "frost": 0.826572,
    "fog": 0.819324,
    "brightness": 0.564592,
    "contrast": 0.853204,
    "elastic_transform": 0.646056,
    "pixelate": 0.717840,
    "jpeg_compression": 0.606500,
}

Errors = Mapping[str, Sequence[float]]  # of each corruption, the error rate at each severity


def mean_corruption_error(errors: Errors, baseline: Errors | str = "alexnet") -> float:
    r"""mCE in percent: the error on each corruption relative to the baseline's, mean over corruptions.

    .. math:: \mathrm{mCE} = \frac{100}{|K|} \sum_{k \in K}
              \frac{\sum_s E_{k,s}}{\sum_s E^{\mathrm{base}}_{k,s}}

    Args:
        errors: corruption k -> its error rates at the severities s, between 0 and 1.
        baseline: the same of the network to compare with, such as a study's baseline; "alexnet" for the published
            errors of AlexNet, with which only results on ImageNet-C can be compared: all 15 corruptions, 5 severities.

    The baseline has 100. One that makes no error on a corruption gives nothing to compare with, and is an error.

    >>> mean_corruption_error({"fog": [0.2, 0.4], "snow": [0.5, 0.5]}, {"fog": [0.4, 0.8], "snow": [0.5, 0.5]})
    75.0

    Reference: Hendrycks, Dietterich. Benchmarking Neural Network Robustness to Common Corruptions and Perturbations.
    ICLR 2019.
    """
    if isinstance(baseline, str):
        checks.one_of("baseline", baseline, ["alexnet"])
        baseline = {name: [rate] * 5 for name, rate in ALEXNET_ERRORS.items()}
    ratios = []
    for name, ours, base in _paired(errors, baseline):
        if not base.sum() > 0:
            raise ValueError(f"the baseline makes no error on {name}; compare with another")
        ratios.append(ours.sum() / base.sum())
    return 100 * float(np.mean(ratios))


def relative_mean_corruption_error(errors: Errors, clean: float, baseline: Errors, baseline_clean: float) -> float:
    r"""Relative mCE in percent: as mCE, of what corruption adds to the error on clean images.

    .. math:: \frac{100}{|K|} \sum_{k \in K} \frac{\sum_s (E_{k,s} - E_{\mathrm{clean}})}
              {\sum_s (E^{\mathrm{base}}_{k,s} - E^{\mathrm{base}}_{\mathrm{clean}})}

    `clean` and `baseline_clean` are the error rates without corruption. A corruption that does not harm the baseline is
    an error.

    >>> relative_mean_corruption_error({"fog": [0.5, 0.75]}, 0.25, {"fog": [0.75, 1.0]}, 0.125)
    50.0

    Reference: as `mean_corruption_error`.
    """
    checks.between("clean", clean, 0, 1)
    checks.between("baseline_clean", baseline_clean, 0, 1)
    ratios = []
    for name, ours, base in _paired(errors, baseline):
        harm = (base - baseline_clean).sum()
        if not harm > 0:
            raise ValueError(f"{name} does not harm the baseline; compare with another")
        ratios.append((ours - clean).sum() / harm)
    return 100 * float(np.mean(ratios))


@either_kind
def subset_logits(logits: Array, classes: Sequence[int]) -> Tensor:
    """Logits (N, C) with all but the given classes ruled out by −inf, for a test set that has only these.

    Predictions and probabilities are then among `classes`, and class indices stay what they are.

    >>> subset_logits([[3.0, 1.0, 2.0]], [1, 2])
    array([[-inf,   1.,   2.]])
    """
    if logits.dim() != 2 or not logits.is_floating_point():
        raise ValueError(f"logits must be floating, of shape (N, C), not {logits.dtype} {tuple(logits.shape)}")
    wanted = sorted({int(c) for c in classes})
    if not wanted or wanted[0] < 0 or wanted[-1] >= logits.shape[1]:
        raise ValueError(f"classes must be indices from 0 to {logits.shape[1] - 1}, at least one, not {list(classes)}")
    kept = torch.zeros(logits.shape[1], dtype=torch.bool, device=logits.device)
    kept[wanted] = True
    return logits.masked_fill(~kept, -torch.inf)


def _paired(errors: Errors, baseline: Errors) -> list[tuple[str, Floats, Floats]]:
    """Each corruption with the error rates of both sides, checked."""
    if not errors or set(errors) != set(baseline):
        lost, strange = sorted(set(baseline) - set(errors)), sorted(set(errors) - set(baseline))
        raise ValueError(f"errors and baseline must have the same corruptions; errors lacks {lost}, baseline {strange}")
    pairs = [(name, _rates("errors", name, errors[name]), _rates("baseline", name, baseline[name])) for name in errors]
    for name, ours, base in pairs:
        if len(ours) != len(base):
            raise ValueError(f"{name} has {len(ours)} severities in errors and {len(base)} in baseline")
    return pairs


def _rates(side: str, name: str, values: Sequence[float]) -> Floats:
    rates = np.asarray(values, dtype=np.float64)
    if rates.ndim != 1 or not len(rates) or not ((rates >= 0) & (rates <= 1)).all():
        raise ValueError(
            f"{side} of {name} must be error rates between 0 and 1, one a severity, not {rates.tolist()}; "
            "divide percent by 100"
        )
    return rates
