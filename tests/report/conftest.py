"""A small study as a store would hold it: four methods, simulated logits, one failed run and one missing."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Iterable
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from equipoise.analysis import METRICS
from equipoise.report import Collected, collect, render_page, sections_of
from equipoise.store import Comparison, Record, Store, StudyDocument

CLASS_COUNTS = (400, 287, 205, 147, 105, 75, 54, 39, 28, 20)
CLASS_NAMES = tuple(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])

# dials that differ from the baseline, prior correction of the simulated network, its strength, its parameters
METHODS = {
    "plain": ({}, 0.0, 2.6, 23_562),
    "balanced_softmax": ({"loss": "balanced_softmax"}, 0.8, 2.6, 23_562),
    "ldam": ({"loss": "ldam(max_margin=0.5, scale=30.0)", "head": "cosine(tau=None)"}, 0.5, 2.7, 23_552),
    "focal": ({"loss": "focal(gamma=2.0)"}, 0.02, 2.6, 23_562),
}
FAILED, MISSING = ("focal", 2), ("focal", 4)
ERROR = 'Traceback (most recent call last):\n  File "loop.py", line 7\nFloatingPointError: the loss is <nan> at step 41'


def key_of(method: str, seed: int) -> str:
    return hashlib.sha256(f"{method}/{seed}".encode()).hexdigest()[:16]


def recipe_of(changes: dict) -> dict:
    return {
        "task": {"name": "digits", "imbalance": "long_tailed", "ratio": 20.0, "valid": 0.1, "n_max": None},
        "model": "cnn_small(width=32)", "norm": "batch", "head": "linear(prior=None)", "loss": "cross_entropy",
        "weighting": None, "penalty": None, "mix": None, "sampler": "uniform", "augment": "shift(pixels=1)",
        "posthoc": None, "plan": {"epochs": 30, "batch_size": 128, "lr": 0.1},
    } | changes  # fmt: skip


def simulated(method: str, seed: int, per_class: int = 30) -> dict[str, np.ndarray]:
    """Logits biased towards large classes, as plain training leaves them; a method takes part of the bias away."""
    _, correction, strength, _ = METHODS[method]
    rng = np.random.default_rng([seed, 1])
    own = np.random.default_rng([seed, 2, *method.encode()])
    labels = np.repeat(np.arange(len(CLASS_COUNTS)), per_class)
    logits = rng.normal(size=(len(labels), len(CLASS_COUNTS))) + 0.35 * own.normal(
        size=(len(labels), len(CLASS_COUNTS))
    )
    logits[np.arange(len(labels)), labels] += strength
    prior = np.log(np.array(CLASS_COUNTS) / sum(CLASS_COUNTS))
    return {"logits": (logits + (1 - correction) * prior).astype(np.float32), "labels": labels}


def curves(method: str, seed: int, epochs: int = 30) -> dict[str, list[float]]:
    rng = np.random.default_rng([seed, 3, *method.encode()])
    t = np.arange(1, epochs + 1)
    scale = 6.0 if method == "ldam" else 1.0
    noise = rng.normal(size=(3, epochs)) * 0.02
    top = 0.62 + 0.12 * METHODS[method][1]
    return {
        "train_loss": (scale * (0.15 + 2 * np.exp(-t / 6) + noise[0])).tolist(),
        "valid_loss": (scale * (0.6 + 1.6 * np.exp(-t / 5) + noise[1])).tolist(),
        "valid_balanced_accuracy": (top - 0.5 * np.exp(-t / 5) + noise[2]).tolist(),
    }


def record_of(method: str, seed: int, **changes) -> Record:
    dials, _, _, parameters = METHODS[method]
    content = {
        "key": key_of(method, seed), "recipe": recipe_of(dials) | {"seed": seed}, "state": "finished",
        "class_names": CLASS_NAMES, "class_counts": CLASS_COUNTS, "data": f"data{seed:04d}", "parameters": parameters,
        "seconds": 12.5 + seed, "ended": f"2025-03-01T10:{seed:02d}:00+00:00",
        "versions": {"equipoise": "0.1.0", "torch": "2.6.0", "python": "3.11.9"}, "device": "cpu",
        "curves": curves(method, seed),
    }  # fmt: skip
    return Record(**content | changes)


def write_study(store: Store, methods=METHODS, seeds: int = 6, **changes) -> None:
    study = {
        "schema": 1, "name": "digits_demo", "question": "On long-tailed digits, what beats plain cross-entropy?",
        "baseline": "plain", "metric": "balanced_accuracy", "seeds": list(range(seeds)),
        "methods": [
            {"name": name, "recipe": recipe_of(METHODS[name][0]), "keys": [key_of(name, s) for s in range(seeds)]}
            for name in methods
        ],
    }  # fmt: skip
    store.write_json("study.json", study | changes)


def make_store(path, seeds: int = 6) -> Store:
    store = Store(path).create()
    write_study(store, seeds=seeds)
    for method in METHODS:
        for seed in range(seeds):
            if (method, seed) == MISSING:
                continue
            if (method, seed) == FAILED:
                short = {name: values[:3] for name, values in curves(method, seed).items()}
                store.put(record_of(method, seed, state="failed", error=ERROR, failed_step=41, curves=short))
            else:
                outputs = simulated(method, seed)
                store.put(record_of(method, seed), {"valid": outputs, "test": outputs})
    return store


def elsewhere(results, name, shift=0.0, methods=None, **task):
    """The same study on other data: every method but the baseline is `shift` better there."""

    def moved(method):
        gain = 0.0 if method.is_baseline else shift
        runs = [replace(run, metrics={n: v + gain for n, v in run.metrics.items()}) for run in method.runs]
        return replace(method, recipe={**method.recipe, "task": {"name": name, **task}}, runs=tuple(runs))

    kept = [m for m in results.methods if methods is None or m.name in methods]
    return replace(results, name=f"study of {name.partition('(')[0]}", methods=tuple(map(moved, kept)))


def page_of(store: Store) -> str:
    """The page as `write_report` writes it."""
    results = collect(store)
    return render_page(results, sections_of(store, results))


@pytest.fixture(scope="session")
def _made(tmp_path_factory) -> Store:
    return make_store(tmp_path_factory.mktemp("made") / "study")


@pytest.fixture(scope="session")
def results(tmp_path_factory, _made) -> Collected:
    """What the study comes to, for tests that only read."""
    return collect(Store(shutil.copytree(_made.path, tmp_path_factory.mktemp("read") / "study")))


@pytest.fixture(scope="session")
def eight(tmp_path_factory) -> Collected:
    """The same with eight seeds, from which on claims can be made of three methods."""
    return collect(make_store(tmp_path_factory.mktemp("eight") / "study", seeds=8))


@pytest.fixture
def store(tmp_path, _made) -> Store:
    """A copy of its own, for a test to break."""
    return Store(shutil.copytree(_made.path, tmp_path / "study"))


class Imagined(Store):
    """A large study that is nowhere on the disk: each run is made up when it is asked for."""

    def __init__(self, methods: int, seeds: int, classes: int, epochs: int) -> None:
        super().__init__("nowhere")
        self.seeds, self.classes, self.epochs = seeds, classes, epochs
        self.names = ["plain", *(f"method number {i}" for i in range(1, methods))]

    def study(self) -> StudyDocument:
        methods = [
            {
                "name": name,
                "recipe": recipe_of({"loss": f"focal(gamma={i})"}),
                "keys": [f"{i}-{s}" for s in range(self.seeds)],
            }
            for i, name in enumerate(self.names)
        ]
        plain = {
            "schema": 1, "name": "large", "question": "Which of many?", "baseline": "plain", "methods": methods,
            "metric": "balanced_accuracy", "seeds": list(range(self.seeds)),
        }  # fmt: skip
        return StudyDocument.from_dict(plain)

    def has(self, key: str) -> bool:
        return True

    def get(self, key: str) -> Record:
        rng = np.random.default_rng(list(map(int, key.split("-"))))
        names = tuple(f"class number {c}" for c in range(self.classes))
        counts = tuple(int(500 * 0.01 ** (c / (self.classes - 1))) for c in range(self.classes))
        curve = 0.2 + np.exp(-np.arange(self.epochs) / 40)
        curves = {n: (curve + 0.01 * rng.normal(size=self.epochs)).tolist() for n in ("train_loss", *VALID_CURVES)}
        return record_of("plain", 0, key=key, class_names=names, class_counts=counts, curves=curves)

    def note_opening(self, keys: Iterable[str], *, peek: bool = False) -> None:
        pass

    def note_comparison(self, comparison: Comparison) -> None:
        pass

    def open_test(self, key: str) -> dict[str, np.ndarray]:
        method, seed = map(int, key.split("-"))
        labels = np.repeat(np.arange(self.classes), 5)
        logits = np.random.default_rng([method, seed]).normal(size=(len(labels), self.classes))
        logits[np.arange(len(labels)), labels] += 2 + 0.05 * method
        return {"logits": logits.astype(np.float32), "labels": labels}


VALID_CURVES = tuple(f"valid_{name}" for name in METRICS)


@pytest.fixture(scope="session")
def demo() -> ModuleType:
    """This file: what the stores are made of, for tests to compute their own numbers from."""
    return sys.modules[__name__]
