"""What layers hold: separation, likeness, hardness, points in the plane; and networks as they were."""

import itertools
import math

import numpy as np
import pytest
import torch

from equipoise.store import Store
from equipoise.study import Asked, How, jobs_of
from equipoise.study.probe import measure as measure_module
from equipoise.study.probe.measure import bandwidth, measure
from equipoise.study.probe.subjects import drawn, network_of, subjects_of
from equipoise.study.run.job import do
from equipoise.train import Recipe, predict

CPU = torch.device("cpu")


def pairs_separation(features, labels):
    """R² of cosine distances by the formula: all pairs of each two classes."""
    x = features / np.linalg.norm(features, axis=1, keepdims=True)
    distance = 1 - x @ x.T
    classes = sorted(set(labels.tolist()))
    means = {(j, k): distance[np.ix_(labels == j, labels == k)].mean() for j in classes for k in classes}
    within = np.mean([means[k, k] for k in classes])
    return 1 - within / np.mean(list(means.values()))


def test_separation_of_the_training_features_by_all_pairs(analyzed, runs_of):
    store, found = analyzed
    layers = found["representations"]
    assert layers["images"] == 200 and layers["training_images"] < 200  # all there are
    for method in layers["methods"]:
        own = []
        for subject in runs_of(store, method["name"]):
            network = network_of(store, subject.record, CPU)
            train = predict(network, network.task.train)
            assert layers["training_images"] == len(train["labels"])
            own.append(pairs_separation(train["features"].astype(float), train["labels"]))
        e = method["separation"]["cosine"][-1]
        assert e["n"] == 3 and e["mean"] == pytest.approx(np.mean(own), abs=1e-3)
        half = 4.302653 * np.std(own, ddof=1) / math.sqrt(3)  # Student's t with two degrees of freedom
        assert e["high"] - e["mean"] == pytest.approx(half, rel=0.02, abs=1e-3)


def test_every_layer_has_its_numbers(analyzed):
    for method in analyzed[1]["representations"]["methods"]:
        assert method["layers"] == ["stem", "stage1", "stage2", "stage3", "features"]
        for column in (*method["separation"].values(), method["nonzero"]):
            assert len(column) == 5 and all(0 <= e["mean"] <= 1 for e in column)
        for kind, size in (("features", 16), ("centroids", 10), ("head", 10)):
            values = method["spectra"][kind]
            assert len(values) == size and values == sorted(values, reverse=True)
        width = 2 / len(method["distances"]["within"])
        for kind in ("within", "between"):
            assert sum(method["distances"][kind]) * width == pytest.approx(1, abs=1e-4)
        assert method["hardness"]["right"]["mean"] < method["hardness"]["wrong"]["mean"]


def gram_cka(x, y):
    """Debiased CKA by the formula of Nguyen et al.: Gram matrices without their diagonal."""

    def hsic(a, b):
        n = len(a)
        a, b = a - np.diag(np.diag(a)), b - np.diag(np.diag(b))
        one = np.ones(n)
        middle = (one @ a @ one) * (one @ b @ one) / ((n - 1) * (n - 2))
        return (np.trace(a @ b) + middle - 2 / (n - 2) * (one @ a @ b @ one)) / (n * (n - 3))

    a, b = x @ x.T, y @ y.T
    return hsic(a, b) / math.sqrt(hsic(a, a) * hsic(b, b))


def test_likeness_of_features_by_gram_matrices(analyzed):
    store, found = analyzed
    cka = found["representations"]["cka"]
    rows = torch.randperm(539, generator=torch.Generator().manual_seed(0))[:200].numpy()
    assert cka["images"] == 200 and cka["seeds"] == 3
    runs = [s for s in subjects_of(store) if s.trained]
    features = [store.test_sealed(s.key)["features"][rows].astype(float) for s in runs]
    for i, j in itertools.combinations(range(len(runs)), 2):
        assert cka["features"][i][j] == pytest.approx(gram_cka(features[i], features[j]), abs=2e-3)
    # the features' corner of the layers of plain against weighted: pairs of unlike seeds, the diagonal left out
    unlike = [cka["features"][i][3 + j] for i in range(3) for j in range(3) if i != j]
    corner = cka["layers"][0][1][-1][-1]
    assert corner == pytest.approx(np.mean(unlike), abs=1e-4) == pytest.approx(cka["between"][0][1], abs=1e-4)


@pytest.mark.parametrize("pooled", [False, True])
def test_likeness_of_maps_value_by_value_or_by_their_means(store, pooled, run, runs_of):
    cka = run(store, Asked(images=60, pooled=pooled))["representations"]["cka"]
    assert cka["maps"] == ("pooled" if pooled else "flattened")

    def stage1(subject):
        network = network_of(store, subject.record, CPU)
        body, images = network.network.eval().double(), drawn(network.task.test, 60).images
        with torch.no_grad():
            maps = body.stage1(body.stem(network.inputs(images).double()))
        return (maps.mean((2, 3)) if pooled else maps.flatten(1)).numpy()

    plain, weighted = ([stage1(s) for s in runs_of(store, name)] for name in ("plain", "weighted"))
    unlike = [gram_cka(plain[i], weighted[j]) for i in range(3) for j in range(3) if i != j]
    assert cka["layers"][0][1][1][1] == pytest.approx(np.mean(unlike), abs=2e-3)


def test_hardness_has_the_bandwidth_of_the_paper(analyzed, runs_of):
    assert bandwidth(50_000) == pytest.approx(1000 * 5e-6)  # of hardness times 1000 classes
    store, found = analyzed
    rows = torch.randperm(539, generator=torch.Generator().manual_seed(0))[:200].numpy()
    at, densities = np.linspace(0, 2, 401), []
    for subject in runs_of(store, "plain"):
        test = store.test_sealed(subject.key)
        x, y = test["features"][rows].astype(float), test["labels"][rows]
        w = network_of(store, subject.record, CPU).network.head.weight.detach().double().numpy()
        cosines = (x / np.linalg.norm(x, axis=1)[:, None]) @ (w / np.linalg.norm(w, axis=1)[:, None]).T
        angles = np.arccos(cosines)
        relative = 10 * angles[np.arange(200), y] / angles.sum(axis=1)
        h = 5e-3 * (50_000 / 200) ** 0.2
        bumps = np.exp(-((at[:, None] - relative) ** 2) / (2 * h * h)) / (h * math.sqrt(2 * math.pi))
        densities.append(bumps.mean(axis=1))
    found = found["representations"]["methods"][0]["hardness"]["density"]
    np.testing.assert_allclose(found, np.mean(densities, axis=0), atol=0.02 * np.max(densities))


def test_post_hoc_runs_have_predictions_and_no_network(analyzed):
    _, found = analyzed
    assert found["predictions"]["methods"] == ["plain", "weighted", "weighing"]
    assert [m["name"] for m in found["representations"]["methods"]] == ["plain", "weighted"]
    assert [m["name"] for m in found["transfer"][0]["methods"]] == ["plain", "weighted"]


def test_training_and_test_features_are_drawn_together(analyzed, runs_of):
    """Principal components of both parts: of two points the distance is no more than that of their features."""
    store, found = analyzed
    embedding, subject = found["representations"]["embedding"], runs_of(store, "plain")[0]
    network = network_of(store, subject.record, CPU)
    splits = network.task.train, drawn(network.task.test, 200)
    n = embedding["training"]
    assert n == len(splits[0]) and len(embedding["labels"]) == n + 200
    counts = [np.bincount(part, minlength=10) for part in (embedding["labels"][:n], embedding["labels"][n:])]
    for split, count in zip(splits, counts, strict=True):
        np.testing.assert_array_equal(count, np.bincount(split.labels, minlength=10))
    x = np.concatenate([predict(network, split)["features"].astype(float) for split in splits])
    spread = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    (first, _) = embedding["methods"]
    points = np.array(first["points"])
    assert embedding["kind"] == "PCA" and first["share"] == pytest.approx(
        (spread[:2] ** 2).sum() / (spread**2).sum(), abs=1e-3
    )
    lengths = np.sqrt((points**2).sum(axis=0))
    assert lengths[1] / lengths[0] == pytest.approx(spread[1] / spread[0], abs=1e-3)


def test_rare_classes_are_among_the_points(monkeypatch):
    monkeypatch.setattr(measure_module, "EMBEDDED", 12)
    labels = torch.tensor([0] * 30 + [1] * 30 + [2] * 3)
    few = measure_module._few(torch.arange(63.0)[:, None], labels)
    assert torch.bincount(few.labels).tolist() == [5, 4, 3]
    assert torch.equal(labels[few.x[:, 0].long()], few.labels)


def test_points_by_tsne(store, run):
    embedding = run(store, Asked(images=60, tsne=True))["representations"]["embedding"]
    assert embedding["kind"] == "t-SNE" and np.isfinite(embedding["methods"][0]["points"]).all()
    points = embedding["methods"][0]["points"]
    assert 50 < embedding["training"] < 70 and len(points) == embedding["training"] + 60  # shares of classes, rounded


@pytest.mark.parametrize(
    "options", [{"stage": "crt"}, {"ema": 0.9}, {"procedure": "bbn"}, {"head": "cosine", "norm": "group(groups=2)"}]
)
def test_every_kind_of_network_is_reloaded_as_it_was(tmp_path, options):
    """Second stages, averaged weights, networks that a procedure has changed: they say what they said at training."""
    small = {"model": "cnn_small(width=4)", "epochs": 1, "batch_size": 32, "warmup": 0}
    recipe = Recipe.make(small | options, {"name": "digits", "n_max": 10})
    store = Store(tmp_path / "study").create()
    (job,) = jobs_of([recipe])
    do(job, store, How(CPU), lambda epoch, curves: None, lambda: False)
    record = store.get(recipe.key)
    assert record.finished, record.error
    again = network_of(store, record, CPU)
    kept, now = store.test_sealed(recipe.key), predict(again, again.task.test)
    assert np.allclose(now["features"], kept["features"], atol=1e-2)
    assert np.mean(now["logits"].argmax(1) == kept["logits"].argmax(1)) > 0.99
    names = measure(again, again.task.train, drawn(again.task.test, 40), _folder(store))["layers"]
    assert names[-1] == "features" and len(names) > 3


def _folder(store):
    (store.path / "analysis").mkdir()
    return store
