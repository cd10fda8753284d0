"""What a study's weightings make of class sizes, and how the example weight of norms was chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...core import Spec, card
from ...imbalance.weightings.effective_number import effective_number
from ...norms import ExampleWeighing, tune_example_weight
from ...store.analysis import ClassWeights, ExampleWeights, MethodAlpha, MethodWeights
from ...train import Run
from ...train.predict import EVALUATION_BATCH
from .subjects import Numbers, Subject, by_method, columns_over_seeds


def class_weights(subjects: Sequence[Subject]) -> ClassWeights | None:
    """The weight of each class under each weighting by class, and its effective number of samples; None if none is."""
    methods = []
    for name, group in by_method(subjects).items():
        counts, text = group[0].record.class_counts, group[0].record.recipe.get("weighting")
        if not text:
            continue
        built: Any = Spec.parse(text).build("weighting", class_counts=torch.tensor(counts), num_classes=len(counts))
        if hasattr(built, "class_weights"):
            effective = (
                tuple(effective_number(torch.tensor(counts), built.beta).tolist()) if hasattr(built, "beta") else None
            )
            methods.append(MethodWeights(name, text, tuple(built.class_weights.tolist()), effective))
    return ClassWeights(subjects[0].record.class_counts, tuple(methods)) if methods else None


# -- the example weight ----------------------------------------------------------------------------------------------


def example_weighing_of(subject: Subject) -> ExampleWeighing | None:
    """The post-hoc example weighing of a run, as its recipe describes it; None for any other."""
    text = subject.record.recipe.get("posthoc")
    if not text or card(Spec.parse(text).name, "posthoc").factory is not ExampleWeighing:
        return None
    weighing: ExampleWeighing = Spec.parse(text).build("posthoc")
    return weighing


def measure_alpha(network: Callable[[], Run], metric: str) -> Numbers:
    """The validation score at each example weight α of the trained network before its correction."""
    run = network()
    valid = run.task.valid
    if not len(valid):
        raise ValueError("there is no validation data")
    chunks = zip(valid.images.split(EVALUATION_BATCH), valid.labels.split(EVALUATION_BATCH), strict=True)
    batches = [(run.inputs(images.to(run.device)), labels) for images, labels in chunks]
    tuned = tune_example_weight(run.evaluated, batches, metric, progress=None)
    alphas, scores = zip(*tuned.curve, strict=True)
    return {"metric": metric, "alphas": alphas, "scores": scores, "best": float(tuned), "images": len(valid)}


def summarize_alpha(subjects: Sequence[Subject], numbers: dict[str, Numbers]) -> ExampleWeights:
    """Each method's curve over seeds."""
    methods = []
    for name, group in by_method(subjects).items():
        runs = [numbers[s.key] for s in group]
        curve, best = columns_over_seeds([run["scores"] for run in runs]), tuple(run["best"] for run in runs)
        methods.append(MethodAlpha(name, runs[0]["metric"], curve, best))
    first = numbers[subjects[0].key]
    return ExampleWeights(first["alphas"], first["images"], tuple(methods))
