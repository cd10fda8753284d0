"""`equipoise analyze` on a study that was really trained, if briefly: three methods and three seeds on a few digits."""

import itertools
import json
import math
import re
import shutil
from collections import Counter
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from equipoise.analysis import ensemble_matrix
from equipoise.cli import app
from equipoise.core import EquipoiseError
from equipoise.data import CORRUPTIONS, Split, load_task
from equipoise.imbalance.weightings.effective_number import effective_number
from equipoise.report import write_report
from equipoise.store import Analysis, Store
from equipoise.study import Asked, How, Interrupted, Listener, Study, analyze_study, jobs_of
from equipoise.study.probe import analysis_markdown
from equipoise.study.probe import elsewhere as elsewhere_module
from equipoise.study.probe import measure as measure_module
from equipoise.study.probe import probe as analyze
from equipoise.study.probe.measure import bandwidth, measure
from equipoise.study.probe.predictions import between_methods
from equipoise.study.probe.predictor import predictor_of
from equipoise.study.probe.subjects import (
    Subject,
    drawn,
    drawn_by_class,
    estimate,
    few_of,
    network_of,
    plain,
    subjects_of,
)
from equipoise.study.probe.transfer import Other, fit_images
from equipoise.study.run.job import do
from equipoise.train import Recipe, predict

CPU = torch.device("cpu")
STUDY = {
    "question": "On a few digits, what helps?",
    "baseline": "plain",
    "seeds": 3,
    "task": {"name": "digits", "imbalance": "long_tailed", "ratio": 5, "n_max": 40},
    "base": {"model": "cnn_small(width=4)", "epochs": 2, "batch_size": 32},
    "methods": {
        "plain": {},
        "weighted": {"weighting": "effective_number(beta=0.99)"},
        "weighing": {"posthoc": "example_weighing"},
    },
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The study with all its runs, not analyzed."""
    study = Study.from_dict(STUDY)
    store = Store(tmp_path_factory.mktemp("trained") / "study").create()
    store.write_json("study.json", study.to_dict())
    for job in jobs_of(recipe for _, recipe in study.recipes()):
        do(job, store, How(CPU), lambda epoch, curves: None, lambda: False)
    return store


@pytest.fixture
def store(trained, tmp_path):
    return Store(shutil.copytree(trained.path, tmp_path / "study"))


@pytest.fixture(scope="module")
def analyzed(trained, tmp_path_factory):
    """A copy that was analyzed with everything, and what was found."""
    store = Store(shutil.copytree(trained.path, tmp_path_factory.mktemp("analyzed") / "study"))
    asked = Asked(images=200, transfer=("blobs",), corruptions=True)
    return store, run(store, asked)


def run(store, asked=None, **options):
    """What was found, as the file has it."""
    found = analyze_study(store, asked or Asked(images=200), CPU, Listener(), **options)
    assert store.document(Analysis) == found
    return store.read_json("analysis.json")


def runs_of(store, method):
    return [s for s in subjects_of(store) if s.method == method]


# -- predictions -----------------------------------------------------------------------------------------------------


def test_agreement_of_all_runs_counted_one_by_one(analyzed):
    store, found = analyzed
    predictions = found["predictions"]
    subjects = subjects_of(store)
    assert [(r["method"], r["seed"]) for r in predictions["runs"]] == [(s.method, s.seed) for s in subjects]
    outputs = [store.test_sealed(s.key) for s in subjects]
    preds = [out["logits"].argmax(1).tolist() for out in outputs]
    labels = outputs[0]["labels"].tolist()
    assert predictions["images"] == len(labels) == 539
    for i, j in itertools.product(range(len(preds)), repeat=2):
        triples = list(zip(preds[i], preds[j], labels, strict=True))
        both_wrong = [(a, b) for a, b, y in triples if a != y and b != y]
        expected = {
            "same_top1": np.mean([a == b for a, b, _ in triples]),
            "both_right_or_wrong": np.mean([(a == y) == (b == y) for a, b, y in triples]),
            "same_error": np.mean([a == b for a, b in both_wrong]),
        }
        for name, value in expected.items():
            assert predictions[name][i][j] == pytest.approx(value, abs=1e-5), name
    assert sorted(predictions["order"]) == list(range(9))
    assert len(predictions["tree"]["x"]) == 8


def test_methods_are_compared_by_runs_of_unlike_seeds():
    """Same-seed pairs share their initial weights: a value there must not count, unless there is nothing else."""
    subjects = [Subject(m, seed, None) for m in ("a", "b") for seed in (0, 1)]
    matrix = np.array([[1.0, 0.1, 0.9, 0.4], [0.1, 1.0, 0.2, 0.9], [0.9, 0.2, 1.0, 0.3], [0.4, 0.9, 0.3, 1.0]])
    assert between_methods(subjects, matrix) == ((0.1, pytest.approx(0.3)), (pytest.approx(0.3), 0.3))
    one = between_methods([subjects[0], subjects[2]], matrix[:3:2, :3:2])
    assert math.isnan(one[0][0]) and one[0][1] == 0.9


@pytest.mark.parametrize("seeds", [3, 4])
def test_votes_counted_by_hand(seeds):
    rng = np.random.default_rng(seeds)
    preds, labels = rng.integers(0, 3, (2, seeds, 50)), rng.integers(0, 3, 50)

    def accuracy(voters):
        right = 0
        for n, label in enumerate(labels):
            ballots = [int(v[n]) for v in voters]
            most = max(Counter(ballots).values())
            right += next(b for b in ballots if ballots.count(b) == most) == label
        return right / len(labels)

    half = math.ceil(seeds / 2)
    a, b = list(preds[0]), list(preds[1])
    found = ensemble_matrix(preds, labels)
    assert found[0, 0] == pytest.approx(accuracy(a)) and found[1, 1] == pytest.approx(accuracy(b))
    both = (accuracy(a[:half] + b[half:]) + accuracy(b[:half] + a[half:])) / 2
    assert found[0, 1] == found[1, 0] == pytest.approx(both)


def test_how_often_votes_of_two_methods_agree(analyzed):
    store, found = analyzed
    votes = []
    for method in ("plain", "weighted", "weighing"):
        preds = np.stack([store.test_sealed(s.key)["logits"].argmax(1) for s in runs_of(store, method)])
        # of equals the first voter's: Counter keeps the order in which it met them
        votes.append([Counter(column).most_common(1)[0][0] for column in preds.T.tolist()])
    for i, j in itertools.combinations(range(3), 2):
        same = np.mean([a == b for a, b in zip(votes[i], votes[j], strict=True)])
        assert found["predictions"]["ensembles"]["agreement"][i][j] == pytest.approx(same, abs=1e-6)


def test_two_voters_are_no_ensemble(analyzed, store):
    assert analyzed[1]["predictions"]["ensembles"]["voters"] == 3
    study = store.read_json("study.json")
    study["seeds"] = study["seeds"][:2]
    for method in study["methods"]:
        method["keys"] = method["keys"][:2]
    store.write_json("study.json", study)
    assert run(store)["predictions"]["ensembles"] is None


# -- representations -------------------------------------------------------------------------------------------------


def pairs_separation(features, labels):
    """R² of cosine distances by the formula: all pairs of each two classes."""
    x = features / np.linalg.norm(features, axis=1, keepdims=True)
    distance = 1 - x @ x.T
    classes = sorted(set(labels.tolist()))
    means = {(j, k): distance[np.ix_(labels == j, labels == k)].mean() for j in classes for k in classes}
    within = np.mean([means[k, k] for k in classes])
    return 1 - within / np.mean(list(means.values()))


def test_separation_of_the_training_features_by_all_pairs(analyzed):
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
def test_likeness_of_maps_value_by_value_or_by_their_means(store, pooled):
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


def test_hardness_has_the_bandwidth_of_the_paper(analyzed):
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


def test_training_and_test_features_are_drawn_together(analyzed):
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


def test_points_by_tsne(store):
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


# -- beyond the test set ---------------------------------------------------------------------------------------------


def test_transfer_says_of_how_many_images(analyzed):
    (part,) = analyzed[1]["transfer"]
    assert part["task"] == "blobs" and part["train"] == 400 and part["test"] == 200
    for method in part["methods"]:
        assert method["accuracy"]["n"] == 3 and 0.34 < method["accuracy"]["mean"] <= 1
    points = part["separation"]["runs"]["plain"]
    e = analyzed[1]["representations"]["methods"][0]["separation"]["cosine"][-1]
    assert np.mean([x for x, _ in points]) == pytest.approx(e["mean"], abs=1e-5)
    assert part["separation"]["rank_correlation"] is None  # of two methods there is none


def test_transfer_stands_beside_separation_and_the_accuracy_at_home(analyzed):
    store, found = analyzed
    (transfer,) = found["transfer"]
    for name, points in transfer["own_accuracy"]["runs"].items():
        own = [store.test_sealed(s.key) for s in runs_of(store, name)]
        right = [np.mean(test["logits"].argmax(1) == test["labels"]) for test in own]
        assert [x for x, _ in points] == pytest.approx(right, abs=1e-5)
        assert [y for _, y in points] == [y for _, y in transfer["separation"]["runs"][name]]


def test_images_are_made_to_fit():
    colour = torch.randint(0, 256, (2, 3, 6, 6), dtype=torch.uint8)
    assert fit_images(colour, 3, (6, 6)) is colour
    grey = fit_images(colour, 1, (6, 6))
    assert grey.shape == (2, 1, 6, 6) and int(grey[0, 0, 2, 3]) == round(float(colour[0, :, 2, 3].float().mean()))
    assert fit_images(grey, 3, (8, 4)).shape == (2, 3, 8, 4)


def test_errors_on_corrupted_images(analyzed):
    store, found = analyzed
    corruptions = found["corruptions"]
    rows = torch.randperm(539, generator=torch.Generator().manual_seed(0))[:200].numpy()
    assert corruptions["images"] == 200
    for method in corruptions["methods"]:
        tests = [store.test_sealed(s.key) for s in runs_of(store, method["name"])]
        clean = [np.mean(t["logits"][rows].argmax(1) != t["labels"][rows]) for t in tests]
        assert method["clean"]["mean"] == pytest.approx(np.mean(clean), abs=1e-6)
        assert len(method["errors"]) == 15 and all(len(column) == 5 for column in method["errors"].values())
        hardest = np.mean([column[-1]["mean"] for column in method["errors"].values()])
        assert method["by_severity"][-1]["mean"] == pytest.approx(hardest, abs=1e-5)
    assert corruptions["methods"][0]["mce"]["mean"] == pytest.approx(100)


def test_weights_and_effective_numbers(analyzed):
    (method,) = analyzed[1]["weights"]["methods"]
    counts = analyzed[1]["weights"]["counts"]
    numbers = [sum(0.99**k for k in range(n)) for n in counts]  # 1 + β + β² + …
    assert method["name"] == "weighted" and method["effective"] == pytest.approx(numbers, rel=1e-5)
    inverse = [1 / e for e in numbers]
    assert method["weights"] == pytest.approx([10 * w / sum(inverse) for w in inverse], rel=1e-4)
    assert effective_number(torch.tensor([3, 1]), 0.0).tolist() == [1, 1]
    assert effective_number(torch.tensor([3, 1]), 1.0).tolist() == [3, 1]


def test_curves_of_the_example_weight(analyzed):
    alpha = analyzed[1]["alpha"]
    (method,) = alpha["methods"]
    assert method["name"] == "weighing" and alpha["alphas"][0] == 0 and alpha["alphas"][-1] == 1
    assert len(method["curve"]) == len(alpha["alphas"]) and all(0 <= b <= 1 for b in method["best"])


# -- going on --------------------------------------------------------------------------------------------------------


def test_what_was_measured_is_not_measured_again(store, monkeypatch):
    first = run(store)
    monkeypatch.setattr(analyze, "measure", lambda *given: pytest.fail("measured again"))
    assert run(store) == first


def test_other_images_are_measured_anew(store):
    assert run(store)["representations"]["images"] == 200
    assert run(store, Asked(images=50))["representations"]["images"] == 50


def test_a_stopped_analysis_goes_on(store, monkeypatch):
    measure, seen = analyze.measure, []

    def stopping(network, *rest):
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(network.recipe.key)
        return measure(network, *rest)

    monkeypatch.setattr(analyze, "measure", stopping)
    with pytest.raises(Interrupted):
        run(store)
    assert not (store.path / "analysis.json").exists()
    monkeypatch.setattr(analyze, "measure", lambda n, *rest: seen.append(n.recipe.key) or measure(n, *rest))
    run(store)
    assert len(seen) == len(set(seen)) == 6


def test_what_was_asked_for_before_is_kept(analyzed, monkeypatch):
    store, before = analyzed
    monkeypatch.setattr(analyze, "network_of", lambda *given: pytest.fail("measured again"))
    again = run(store)
    assert again["transfer"] == before["transfer"] and again["corruptions"] == before["corruptions"]


def test_a_run_that_cannot_be_measured_is_told(store, monkeypatch):
    bad = runs_of(store, "weighted")[1].key
    measure = analyze.measure

    def refusing(network, *rest):
        if network.recipe.key == bad:
            raise ValueError("features are not finite in 3 of 200 rows")
        return measure(network, *rest)

    monkeypatch.setattr(analyze, "measure", refusing)
    found = run(store)
    assert [(p["method"], p["seed"]) for p in found["problems"]] == [("weighted", 1)]
    assert found["representations"]["methods"][1]["separation"]["cosine"][-1]["n"] == 2
    assert "weighted, seed 1: not measured, features are not finite" in analysis_markdown(store.document(Analysis))


def test_one_run_alone(store):
    study = store.read_json("study.json")
    study["methods"], study["seeds"] = [study["methods"][0] | {"keys": study["methods"][0]["keys"][:1]}], [0]
    store.write_json("study.json", study)
    found = run(store)
    assert found["predictions"] is None and found["representations"]["cka"] is None
    assert found["representations"]["methods"][0]["separation"]["cosine"][-1]["low"] is None


# -- what is written -------------------------------------------------------------------------------------------------


def test_the_file_is_plain_json(analyzed):
    text = (analyzed[0].path / "analysis.json").read_text()
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert plain({"a": np.array([1.0, np.nan]), "b": (np.float32(0.1), 2)}) == {"a": [1.0, None], "b": [0.1, 2]}


def test_the_opening_of_the_test_set_is_noted(store):
    run(store, peek=True)
    (opening,) = store.read_json("opened.json")["openings"]
    assert opening["peek"] and len(opening["keys"]) == 9


def test_the_key_table(analyzed):
    text = (analyzed[0].path / "analysis.md").read_text()
    header = next(line for line in text.splitlines() if line.startswith("| method"))
    assert [c.strip() for c in header.strip("|").split("|")] == [
        "method", "R²", "non-zero %", "CKA to plain", "most alike, %", "transfer %", "mCE",
    ]  # fmt: skip
    row = next(line for line in text.splitlines() if line.startswith("| plain"))
    assert re.search(r"0\.\d{3} ± 0\.\d{3}", row) and "100.0 ± 0.0" in row and re.search(r"weigh\w+ \d\d\.\d", row)
    assert "over 3 seeds" in text and "training images" in text


def test_no_class_gets_lost_when_training_images_are_drawn():
    labels = torch.tensor([0] * 600 + [1] * 60 + [2] * 3 + [3])
    split = Split(torch.arange(664, dtype=torch.int32).view(-1, 1, 1, 1), labels)
    few = drawn_by_class(split, 66)
    assert torch.bincount(few.labels).tolist() == [60, 6, 2, 1]
    assert torch.equal(few.labels, labels[few.images.flatten().long()]) and len(few.images.unique()) == 69
    assert len(drawn_by_class(split, 1000)) == 664


def test_estimates_and_draws():
    e = estimate([1.0, None, 3.0])
    assert (e.n, e.mean) == (2, 2.0) and e.high == pytest.approx(2 + 12.7062)
    assert math.isnan(estimate([]).mean)
    subjects = [Subject(m, s, type("R", (), {"key": f"{m}{s}"})()) for m in "ab" for s in range(5)]
    assert few_of(subjects, 4) == [0, 1, 5, 6] and few_of(subjects, 1) == [0, 5]
    split = load_task("digits").test
    assert drawn(split, 10).labels.tolist() == drawn(split, 30).labels[:10].tolist()
    assert len(drawn(split, 10_000)) == len(split)


# -- the command -----------------------------------------------------------------------------------------------------


def command(*arguments):
    return CliRunner().invoke(app, ["analyze", *map(str, arguments), "--device", "cpu"])


def test_the_command_prints_a_table_and_writes_the_report(store):
    done = command(store.path, "--images", "60")
    assert done.exit_code == 0, done.output
    assert "R²" in done.output and "plain" in done.output and "report.html" in done.output
    page = (store.path / "report.html").read_text()
    for name in ("similarity", "representations", "weights", "alpha"):
        assert f'<section id="{name}"' in page
    assert '<section id="transfer"' not in page


def test_the_command_refuses_what_it_cannot_do(store, tmp_path):
    missing = command(tmp_path / "nowhere")
    assert isinstance(missing.exception, EquipoiseError) and "not there" in str(missing.exception)
    wrong = command(store.path, "--transfer", "digitz")
    assert isinstance(wrong.exception, EquipoiseError) and "Did you mean 'digits'" in str(wrong.exception)
    assert not (store.path / "analysis").exists()
    store.remove(runs_of(store, "plain")[0].key)
    early = command(store.path)
    assert isinstance(early.exception, EquipoiseError) and "--peek" in str(early.exception)
    assert not (store.path / "analysis.json").exists()


def test_the_command_says_how_to_go_on(store, monkeypatch):
    def stop(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(analyze, "measure", stop)
    done = command(store.path)
    assert done.exit_code == 130 and "goes on from here" in done.output


def test_kept_names_of_other_tasks_differ():
    assert Other("digits", 10).part != Other("blobs", 10).part


# -- further test images ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """Test images of three digits as files, in folders whose names are in names.txt; one folder is left out."""
    base, test = tmp_path_factory.mktemp("elsewhere") / "photos", load_task("digits").test
    for folder, digit in (("zero", 0), ("seven", 7), ("nine", 9), ("letters", 3)):
        (base / folder).mkdir(parents=True)
        for i, image in enumerate(test.images[test.labels == digit][:12]):
            Image.fromarray(image[0].numpy()).save(base / folder / f"{i}.png")
    names = load_task("digits").class_names
    lines = [f"{folder} {names[digit]}" for folder, digit in (("zero", 0), ("seven", 7), ("nine", 9))]
    (base / "names.txt").write_text("\n".join([*lines, "letters"]))
    return base


def test_images_from_elsewhere_are_judged_among_their_classes(store, elsewhere, monkeypatch):
    reads = Mock(wraps=elsewhere_module.load_further)
    monkeypatch.setattr(elsewhere_module, "load_further", reads)
    found = run(store, Asked(images=200, further=(str(elsewhere),)))
    assert reads.call_count == 1  # for all nine runs
    (part,) = found["further"]
    assert (part["folder"], part["images"], part["classes"]) == (str(elsewhere), 36, 3)
    assert part["metric"] == "balanced_accuracy"
    kept = torch.tensor([0, 7, 9])
    for method in part["methods"]:
        there, here = [], []
        for subject in runs_of(store, method["name"]):
            predictor = predictor_of(store, subject, CPU)
            test = predictor.run.task.test
            rows = torch.cat([(test.labels == digit).nonzero().flatten()[:12] for digit in kept])
            every = torch.isin(test.labels, kept).nonzero().flatten()
            for chosen, scores in ((rows, there), (every, here)):
                split = test.take(chosen)
                right = kept[predictor.logits(split)[:, kept].argmax(1)] == split.labels
                scores.append(np.mean([right[split.labels == c].double().mean().item() for c in kept]))
        assert method["score"]["mean"] == pytest.approx(np.mean(there), abs=1e-5)
        assert method["accuracy"]["mean"] == pytest.approx(np.mean(there), abs=1e-5)  # as many of each
        assert method["own_score"]["mean"] == pytest.approx(np.mean(here), abs=1e-5)
    assert [m["name"] for m in part["methods"]] == ["plain", "weighted", "weighing"]
    text = analysis_markdown(store.document(Analysis))
    assert "| photos % |" in text and "balanced accuracy on 36 images of 3 classes" in text
    assert run(store)["further"] == found["further"]  # kept by a later call


def test_a_corrected_run_predicts_as_its_stored_outputs_do(store):
    for subject in (*runs_of(store, "weighing"), *_adjusted(store)):
        predictor = predictor_of(store, subject, CPU)
        logits, stored = predictor.logits(predictor.run.task.test), store.test_sealed(subject.key)["logits"]
        torch.testing.assert_close(logits.softmax(1), torch.from_numpy(stored).softmax(1), atol=2e-3, rtol=1e-2)
        plain_logits = torch.from_numpy(store.test_sealed(subject.record.trained_by)["logits"])
        assert subject.method == "weighing" or not torch.allclose(plain_logits.softmax(1), logits.softmax(1), atol=1e-2)


def _adjusted(store):
    """A run of `plain` corrected by what needs no network."""
    recipe = replace(
        Recipe.from_dict(runs_of(store, "plain")[0].record.recipe), posthoc="logit_adjust(tau=None, prior=None)"
    )
    (job,) = jobs_of([recipe])
    do(job, store, How(CPU), lambda epoch, curves: None, lambda: False)
    return [Subject("adjusted", 0, store.get(recipe.key))]


def test_images_from_elsewhere_are_judged_by_the_metric_of_the_study(store, elsewhere):
    store.write_json("study.json", store.read_json("study.json") | {"metric": "nll"})
    (part,) = run(store, Asked(images=200, further=(str(elsewhere),)))["further"]
    assert part["metric"] == "nll" and all(m["score"]["mean"] > 0 for m in part["methods"])
    page = write_report(store).read_text()
    assert "Negative log-likelihood on photos" in page


def test_a_folder_that_is_not_there_or_not_of_the_task_is_said_at_once(store, elsewhere, tmp_path):
    with pytest.raises(EquipoiseError, match="is not a folder; --further wants one"):
        run(store, Asked(images=200, further=(str(tmp_path / "nowhere"),)))
    other = shutil.copytree(elsewhere, tmp_path / "other")
    (other / "names.txt").unlink()
    with pytest.raises(EquipoiseError, match="are of no class of the task: letters"):
        run(store, Asked(images=200, further=(str(other),)))


def test_the_report_shows_further_images(store, elsewhere):
    result = CliRunner().invoke(app, ["analyze", str(store.path), "--further", str(elsewhere), "--images", "200"])
    assert result.exit_code == 0, result.output
    page = (store.path / "report.html").read_text()
    assert "Further test images" in page and "Balanced accuracy on photos" in page


# -- ImageNet-C ------------------------------------------------------------------------------------------------------


def test_errors_on_imagenet_c_are_relative_to_alexnets(store, tmp_path):
    """Every folder has the same images, so every error is that on them; AlexNet's errors are the published ones."""
    base, test = tmp_path / "ImageNet-C", load_task("digits").test
    rows = torch.cat([(test.labels == digit).nonzero().flatten()[:3] for digit in (3, 8)])
    for name, severity in itertools.product(CORRUPTIONS, range(1, 6)):
        for row in rows.tolist():
            folder = base / name / str(severity) / name_of_digit(int(test.labels[row]))
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(test.images[row, 0].numpy()).save(folder / f"{row}.png")
    found = run(store, Asked(images=200, imagenet_c=str(base)))
    part = found["imagenet_c"]
    assert part["folder"] == str(base) and part["baseline"] == "AlexNet" and found["corruptions"] is None
    alexnet = [0.886428, 0.894468, 0.922640, 0.819880, 0.826268, 0.785948, 0.798360, 0.866816, 0.826572, 0.819324]
    alexnet += [0.564592, 0.853204, 0.646056, 0.717840, 0.606500]
    for method in part["methods"]:
        tests = [store.test_sealed(s.key) for s in runs_of(store, method["name"])]
        errors = [np.mean(t["logits"][rows].argmax(1) != t["labels"][rows]) for t in tests]
        assert method["errors"]["fog"][2]["mean"] == pytest.approx(np.mean(errors), abs=1e-6)
        assert method["mce"]["mean"] == pytest.approx(
            100 * np.mean(errors) * np.mean([1 / a for a in alexnet]), rel=1e-4
        )
    assert "mCE on ImageNet-C: mean corruption error in % of AlexNet's" in analysis_markdown(store.document(Analysis))
    assert "ImageNet-C" in write_report(store).read_text()
    assert run(store)["imagenet_c"] == part  # kept by a later call
    shutil.rmtree(base / "fog" / "3")
    with pytest.raises(EquipoiseError, match="lacks 1 of the 75 folders of ImageNet-C: fog/3"):
        run(store, Asked(images=200, imagenet_c=str(base)))


def name_of_digit(label):
    return load_task("digits").class_names[label]
