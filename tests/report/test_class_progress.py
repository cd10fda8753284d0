"""The section on what happened to the classes while training."""

import re

import numpy as np
import pytest

from equipoise.report import sections_of
from equipoise.report.figures.plane import CELLS, plane_plot
from equipoise.store import Store

EPOCHS = np.array([1, 10, 30])


def seen(rng=np.random.default_rng(0)):  # noqa: B008
    return {
        "epoch": EPOCHS,
        "classification_ratio": rng.uniform(0, 2, (3, 10)),
        "train_accuracy": rng.uniform(0, 1, (3, 10)),
        "mixed_layer_gradient": rng.uniform(0, 2, (3, 10)),
        "norm_range": rng.uniform(1, 2, (3, 4, 3)),
    }


def in_the_plane(counts, seed):
    rng = np.random.default_rng(seed)
    labels = np.tile(np.repeat(np.arange(len(counts)), counts), (3, 1))
    return {"points": labels[..., None] + rng.normal(size=(*labels.shape, 2)), "labels": labels}


PLANE = {"plane_weight": np.ones((3, 4, 2)) * np.arange(4)[:, None], "plane_bias": np.zeros((3, 4))}


def section(store, results, monkeypatch, shown, sealed):
    monkeypatch.setattr(Store, "progress", lambda self, key: shown)
    monkeypatch.setattr(Store, "open_progress", lambda self, key: sealed)
    (found,) = (s for s in sections_of(store, results) if s.name == "progress")
    return "".join(found.figures)


def titles(figures):
    return [title for title in re.findall(r'<text class="panel"[^>]*>([^<]+)', figures) if ":" in title]


def test_deviation_is_from_the_test_features(store, results, monkeypatch):
    sealed = {"feature_deviation": np.full((3, 10), 0.5)}
    found = titles(section(store, results, monkeypatch, seen(), sealed))
    assert "Training from test features: rare classes" in found and "Gradient at the mixed layer: rare classes" in found
    assert not any("validation" in title or "at the features" in title for title in found)


def test_what_earlier_versions_recorded_is_called_what_it_was(store, results, monkeypatch):
    old = {name: values for name, values in seen().items() if name != "mixed_layer_gradient"}
    old |= {"feature_deviation": np.full((3, 10), 0.5), "gradient_norm": np.ones((3, 10))}
    found = titles(section(store, results, monkeypatch, old, {}))
    assert (
        "Training from validation features: rare classes" in found and "Gradient at the features: rare classes" in found
    )
    assert not any("test features" in title or "mixed" in title for title in found)


@pytest.mark.parametrize("with_test", [True, False])
def test_training_and_test_points_lie_in_one_frame(results, with_test):
    counts, method = (200, 200, 5, 5), results.methods[0]
    train, test = in_the_plane(counts, 0), in_the_plane((50, 50, 50, 50), 1)
    shown = {"epoch": EPOCHS, **train, **PLANE}
    drawn = str(plane_plot(method, shown, [1, 30], test if with_test else None))
    squares = re.findall(r"<g transform=.translate", drawn)
    assert len(squares) == (4 if with_test else 2) and ("and test images below" in drawn) == with_test
    spots = re.findall(r'class="spot k(\d)"', drawn)
    per_square = [62, 62, 5, 5]  # 250 shared by four classes; of rare ones all
    if not with_test:
        assert [spots.count(str(k + 1)) for k in range(4)] == [2 * n for n in per_square]
    places = [float(x) for x in re.findall(r'c[xy]="([-\d.]+)"', drawn)]
    assert min(places) > 0 and max(places) < CELLS
