"""How alike predictions are, and what votes of runs are worth."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from equipoise.analysis import ensemble_matrix
from equipoise.study.probe.predictions import between_methods
from equipoise.study.probe.subjects import Subject, subjects_of


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


def test_how_often_votes_of_two_methods_agree(analyzed, runs_of):
    store, found = analyzed
    votes = []
    for method in ("plain", "weighted", "weighing"):
        preds = np.stack([store.test_sealed(s.key)["logits"].argmax(1) for s in runs_of(store, method)])
        # of equals the first voter's: Counter keeps the order in which it met them
        votes.append([Counter(column).most_common(1)[0][0] for column in preds.T.tolist()])
    for i, j in itertools.combinations(range(3), 2):
        same = np.mean([a == b for a, b in zip(votes[i], votes[j], strict=True)])
        assert found["predictions"]["ensembles"]["agreement"][i][j] == pytest.approx(same, abs=1e-6)


def test_two_voters_are_no_ensemble(analyzed, store, run):
    assert analyzed[1]["predictions"]["ensembles"]["voters"] == 3
    study = store.read_json("study.json")
    study["seeds"] = study["seeds"][:2]
    for method in study["methods"]:
        method["keys"] = method["keys"][:2]
    store.write_json("study.json", study)
    assert run(store)["predictions"]["ensembles"] is None
