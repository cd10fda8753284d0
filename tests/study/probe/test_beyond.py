"""Transfer to other tasks and corrupted images."""

import numpy as np
import pytest
import torch

from equipoise.study.probe.transfer import fit_images


def test_transfer_says_of_how_many_images(analyzed):
    (part,) = analyzed[1]["transfer"]
    assert part["task"] == "blobs" and part["train"] == 400 and part["test"] == 200
    for method in part["methods"]:
        assert method["accuracy"]["n"] == 3 and 0.34 < method["accuracy"]["mean"] <= 1
    points = part["separation"]["runs"]["plain"]
    e = analyzed[1]["representations"]["methods"][0]["separation"]["cosine"][-1]
    assert np.mean([x for x, _ in points]) == pytest.approx(e["mean"], abs=1e-5)
    assert part["separation"]["rank_correlation"] is None  # of two methods there is none


def test_transfer_stands_beside_separation_and_the_accuracy_at_home(analyzed, runs_of):
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


def test_errors_on_corrupted_images(analyzed, runs_of):
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
