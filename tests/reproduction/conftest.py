"""A store with a small study: two methods, three seeds, two classes, outputs made so that scores are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from equipoise.store import MethodDocument, Record, Store, StudyDocument

RECIPE = {
    "task": {"name": "folder(path='/home/me/photos', size=8)", "valid": 0.1, "content": "c0ffee"},
    "model": "cnn_small(width=4)",
    "loss": "cross_entropy",
    "mix": None,
    "plan": {"epochs": 30, "lr": 0.1},
}
RIGHT = {"plain": (6, 7, 8), "focal": (9, 9, 9)}  # of ten test images, by seed


def key_of(method, seed):
    return f"{method}{seed}"


def record_of(method, seed, **changes):
    record = Record(
        key=key_of(method, seed),
        recipe={**RECIPE, "seed": seed},
        state="finished",
        class_names=("cat", "dog"),
        class_counts=(40, 20),
        data=f"images{seed}",
        parameters=1234,
        seconds=1.23456,
        ended=f"2026-11-0{seed + 1}T10:00:00+00:00",
        versions={"equipoise": "0.1.0", "torch": "2.11.0"},
        device="CPU x86_64",
        metrics={"valid_accuracy": 0.5, "train_loss": 0.1},
        curves={"train_loss": [0.3, 0.1]},
    )
    return replace(record, **changes)


def outputs(right):
    """Logits of ten images, of which so many are right."""
    labels = np.arange(10) % 2
    said = np.where(np.arange(10) < right, labels, 1 - labels)
    logits = np.zeros((10, 2), np.float32)
    logits[np.arange(10), said] = 2.0
    return {"logits": logits, "labels": labels, "features": np.zeros((10, 1), np.float32)}


def document(seeds=(0, 1, 2), methods=("plain", "focal"), name="small"):
    recipes = {method: {**RECIPE, "loss": "focal" if method == "focal" else "cross_entropy"} for method in methods}
    return StudyDocument(
        name=name,
        question="Does focal loss help?",
        baseline="plain",
        metric="accuracy",
        seeds=tuple(seeds),
        methods=tuple(
            MethodDocument(method, recipes[method], tuple(key_of(method, seed) for seed in seeds)) for method in methods
        ),
    )


def paper_text(studies, numbers, differs=""):
    """The file of a paper with one table, a column for each of the studies."""
    return f'''
paper = "A paper"
reference = "A. Author"
[[table]]
table = "table 1"
place = "page 1"
metric = "accuracy"
studies = {studies}
numbers = """
{numbers}
"""
{differs}
'''


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store").create()
    for method, rights in RIGHT.items():
        for seed, right in enumerate(rights):
            store.put(record_of(method, seed), {"test": outputs(right)}, weights=bytes(10_000))
    return store
