"""`improve`: corrections of a trained network, chosen on one half of held-out data and judged on the other."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..core import EquipoiseError, checks, known
from ..core.words import shown
from ..imbalance import estimate_prior
from ..norms import example_weight, set_example_weight, tune_example_weight
from ..norms.kernels.modes import in_mode
from .affine import CorrectedLogits
from .candidates import Aim, Candidate, Weighed, best, candidates
from .halves import Rows, again_and_again, halves
from .images import Images, folder_batches, unlabelled_batches
from .improvement import FEW, Improvement
from .judged import CHOICES, Score, class_weights, compared
from .outputs import Outputs, device_of, head_name, logits_of, outputs_of

Batches = Iterable[Sequence[Tensor]]

_TUNED_FOR = {"accuracy": "accuracy", "balanced_accuracy": "balanced_accuracy", "nll": "loss"}


@dataclass(frozen=True)
class Part:
    """One of the two parts of the held-out data, and what the network says of it as it is."""

    batches: Batches
    out: Outputs

    def weighed(self, network: nn.Module, alpha: float | None) -> Outputs:
        return self.out if alpha is None else outputs_of(network, self.batches, alpha)


def improve(
    network: nn.Module,
    held_out: Batches | Path | str,
    *,
    metric: str | None = None,
    class_counts: checks.Counts | None = None,
    prior: Sequence[float] | None = None,
    unlabelled: Iterable[Any] | Path | str | None = None,
    report_on: Batches | Path | str | None = None,
    images: Images | None = None,
    class_names: Sequence[str] | None = None,
    seed: int = 0,
    say: Callable[[str], None] | None = None,
) -> Improvement:
    """Correct a trained classifier without training it: example weighing, tau-norm, logit adjustment, temperature.

    Every combination is fitted on one half of the held-out data, the best by `metric` is chosen there, and judged on
    the other half, with 95 % intervals. The network given is left as it was; `.network` of the answer is a corrected
    copy of it if that is surely better, else the network itself.

    Args:
        network: any module that gives logits (N, C), whose softmax are probabilities.
        held_out: data that the network was not trained on: (inputs, target) batches, such as a `DataLoader` without
            shuffling, or a folder with one folder for each class.
        metric: "balanced_accuracy", "accuracy" or "nll"; by default balanced accuracy, or where there is a prior,
            accuracy under it.
        class_counts: training images of each class. Without them logit adjustment is fitted on the held-out data.
        prior: the share of each class where the network will be used. Accuracy, negative log-likelihood and
            calibration error are then those to expect there.
        unlabelled: data from there without labels, from which the prior is estimated: batches of inputs, or a folder.
        report_on: judge on this data, and choose on all of `held_out`.
        images: how the files of a folder become inputs; not needed for batches.
        class_names: by default the names of the folders, or the numbers of the classes.
        seed: decides the halves and the draws of the bootstrap.
        say: is told what is being done, a sentence at a time.
    """
    say = say or (lambda sentence: None)
    metric = _checked_metric(metric, prior, unlabelled)
    checks.whole("seed", seed)
    batches, class_names = _batches(held_out, images, class_names)
    others = None if report_on is None else _batches(report_on, images, class_names)[0]
    with in_mode(network, training=False):
        say("The network sees the held-out data …")
        choosing, judging = _parts(network, batches, others, seed)
        class_names = _checked_names(class_names, choosing.out.num_classes)
        target = None if prior is None else _checked_prior(prior, choosing.out, judging.out)
        if unlabelled is not None:
            say("The class shares of the data without labels are estimated …")
            target = _estimated(network, choosing.out, _inputs(unlabelled, images))
        say("Corrections are fitted on the half to choose on …")
        head = head_name(network, next(iter(batches))[0])
        variants, left_out = _variants(network, choosing, metric)
        tried = candidates(variants, _aim(metric, target, choosing.out, class_counts), _layer(network, head))
        chosen = best(tried, metric)
        say("The choice is judged on the other half …")
        scores = _scores(network, judging, chosen, target, seed)
    helped = chosen is not None and scores[metric].is_better
    without_head = [] if head is not None else ["Tau-norm was left out: the last layer of the network is not linear."]
    return Improvement(
        metric=metric,
        network=corrected(network, head, chosen) if chosen is not None and helped else network,
        helped=helped,
        chosen=chosen,
        candidates=tuple(tried),
        scores=scores,
        left_out=(*left_out, *without_head),
        class_names=class_names,
        prior=None if target is None else tuple(target.tolist()),
        prior_is_estimated=unlabelled is not None,
        sizes=(len(choosing.out.labels), len(judging.out.labels)),
        sparse_classes=int((torch.bincount(judging.out.labels, minlength=len(class_names)) < FEW).sum()),
        seed=seed,
        head=head,
        images=images,
        fitted_on=_with(chosen, variants),
    )


def _with(chosen: Candidate | None, variants: list[Weighed]) -> Outputs:
    """What is said of the half that was chosen on, after the corrections."""
    if chosen is None:
        return variants[0].out
    out = next(variant.out for variant in variants if variant.alpha == chosen.alpha)
    return Outputs(chosen.correction(out.logits), out.labels)


def corrected(network: nn.Module, head: str | None, chosen: Candidate) -> nn.Module:
    """A copy of the network with the corrections in it: in its last layer if that is linear, else around it."""
    network, correction = copy.deepcopy(network), chosen.correction
    if chosen.alpha is not None:
        set_example_weight(network, chosen.alpha)
    layer = _layer(network, head)
    if layer is not None and correction.fits_into(layer):
        correction.put_into(layer)
    elif not correction.changes_nothing:
        return CorrectedLogits(network, correction).to(device_of(network)).train(network.training)
    return network


# -- the data ----------------------------------------------------------------------------------------------------------


def _batches(
    data: Batches | Path | str, images: Images | None, class_names: Sequence[str] | None
) -> tuple[Batches, Sequence[str] | None]:
    if not isinstance(data, Path | str):
        return again_and_again(data), class_names
    of_folder = folder_batches(Path(data).expanduser(), _needed(images), class_names)
    return of_folder, of_folder.class_names


def _inputs(data: Iterable[Any] | Path | str, images: Images | None) -> Iterable[Any]:
    return unlabelled_batches(Path(data).expanduser(), _needed(images)) if isinstance(data, Path | str) else data


def _needed(images: Images | None) -> Images:
    if images is None:
        raise EquipoiseError(
            "a folder needs images=equipoise.improvement.Images(size=…, mean=…, std=…), which say how its files "
            "become inputs"
        )
    return images


def _parts(network: nn.Module, batches: Batches, others: Batches | None, seed: int) -> tuple[Part, Part]:
    """What is chosen on and what is judged on: two halves of `batches`, or these and `others`."""
    out = outputs_of(network, batches)
    if others is not None:
        judged = outputs_of(network, others)
        return Part(Rows(batches, torch.arange(len(out.labels)), out.labels), out), Part(others, judged)
    chosen_on, judged_on = (
        Part(Rows(batches, rows, out.labels), out.at(rows)) for rows in halves(out.labels, out.num_classes, seed)
    )
    return chosen_on, judged_on


# -- what is asked for -------------------------------------------------------------------------------------------------


def _checked_metric(metric: str | None, prior: Any, unlabelled: Any) -> str:
    if prior is not None and unlabelled is not None:
        raise EquipoiseError("give a prior, or unlabelled data to estimate it from, not both")
    usual = "balanced_accuracy" if prior is None and unlabelled is None else "accuracy"
    return usual if metric is None else known("metric", metric, CHOICES)


def _checked_names(names: Sequence[str] | None, num_classes: int) -> tuple[str, ...]:
    names = tuple(map(str, range(num_classes))) if names is None else tuple(names)
    if len(names) != num_classes:
        raise EquipoiseError(
            f"the network has {num_classes} classes and the data {len(names)}: name all classes of the network, in its "
            "order (--classes FILE, in Python class_names=…)"
        )
    return names


def _checked_prior(prior: Sequence[float], *parts: Outputs) -> Tensor:
    shares, num_classes = torch.tensor([*prior], dtype=torch.float64), parts[0].num_classes
    if shares.shape != (num_classes,) or bool((shares < 0).any()) or not 0 < float(shares.sum()) < torch.inf:
        raise EquipoiseError(
            f"prior must have a share of 0 or more for each of {num_classes} classes, not all 0, not {shown([*prior])}"
        )
    for part in parts:
        unknown = ((shares > 0) & (torch.bincount(part.labels, minlength=num_classes) == 0)).nonzero().flatten()
        if len(unknown):
            raise EquipoiseError(
                f"prior expects class {unknown.tolist()}, of which a half of the held-out data has no sample; give "
                "such classes a share of 0, or more data"
            )
    return shares / shares.sum()


def _estimated(network: nn.Module, out: Outputs, inputs: Iterable[Any]) -> Tensor:
    return estimate_prior(out.logits.softmax(1), out.labels, logits_of(network, inputs).softmax(1))


def _aim(metric: str, target: Tensor | None, out: Outputs, class_counts: checks.Counts | None) -> Aim:
    """The shares that a metric is about are those given or estimated, else even ones or those of the data itself."""
    shares = target
    if shares is None:
        seen = torch.bincount(out.labels, minlength=out.num_classes).double()
        shares = torch.ones_like(seen) if metric == "balanced_accuracy" else seen
    counts = None if class_counts is None else checks.counts(class_counts)
    if counts is not None and len(counts) != out.num_classes:
        raise EquipoiseError(f"class_counts must have {out.num_classes} numbers, one for each class, not {len(counts)}")
    return Aim(metric, shares / shares.sum(), class_weights(out.labels, target), counts)


# -- the corrections ---------------------------------------------------------------------------------------------------


def _layer(network: nn.Module, head: str | None) -> nn.Linear | None:
    layer = None if head is None else network.get_submodule(head)
    return layer if isinstance(layer, nn.Linear) else None


def _variants(network: nn.Module, choosing: Part, metric: str) -> tuple[list[Weighed], tuple[str, ...]]:
    """The network as it is, and with the best example weight; or a sentence that says why not."""
    as_it_is = Weighed(None, choosing.out)
    if not _has_moving_averages(network):
        return [as_it_is], ("Example weighing was left out: the network has no norm with moving averages.",)
    alpha = float(tune_example_weight(network, choosing.batches, _TUNED_FOR[metric], progress=None))
    weighed = choosing.weighed(network, alpha)
    if torch.equal(weighed.logits, choosing.out.logits):
        return [as_it_is], ("Example weighing was left out: no weight is better than none.",)
    return [as_it_is, Weighed(alpha, weighed)], ()


def _has_moving_averages(network: nn.Module) -> bool:
    try:
        with example_weight(network, None):
            return True
    except ValueError:
        return False


def _scores(
    network: nn.Module, judging: Part, chosen: Candidate | None, target: Tensor | None, seed: int
) -> dict[str, Score]:
    before = after = judging.out.logits
    if chosen is not None:
        after = chosen.correction(judging.weighed(network, chosen.alpha).logits)
    labels = judging.out.labels
    return compared(before, after, labels, class_weights(labels, target), seed)
