"""Further test images from elsewhere, and ImageNet-C."""

import itertools
import shutil
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from equipoise.cli import app
from equipoise.core import EquipoiseError
from equipoise.data import CORRUPTIONS, load_task
from equipoise.report import write_report
from equipoise.store import Analysis
from equipoise.study import Asked, How, jobs_of
from equipoise.study.probe import analysis_markdown
from equipoise.study.probe import elsewhere as elsewhere_module
from equipoise.study.probe.predictor import predictor_of
from equipoise.study.probe.subjects import Subject, subjects_of
from equipoise.study.run.job import do
from equipoise.train import Recipe

CPU = torch.device("cpu")


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


def test_images_from_elsewhere_are_judged_among_their_classes(store, elsewhere, monkeypatch, run, runs_of):
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


def test_a_corrected_run_predicts_as_its_stored_outputs_do(store, runs_of):
    for subject in (*runs_of(store, "weighing"), *_adjusted(store)):
        predictor = predictor_of(store, subject, CPU)
        logits, stored = predictor.logits(predictor.run.task.test), store.test_sealed(subject.key)["logits"]
        torch.testing.assert_close(logits.softmax(1), torch.from_numpy(stored).softmax(1), atol=2e-3, rtol=1e-2)
        plain_logits = torch.from_numpy(store.test_sealed(subject.record.trained_by)["logits"])
        assert subject.method == "weighing" or not torch.allclose(plain_logits.softmax(1), logits.softmax(1), atol=1e-2)


def _adjusted(store):
    """A run of `plain` corrected by what needs no network."""
    recipe = replace(
        Recipe.from_dict(subjects_of(store)[0].record.recipe), posthoc="logit_adjust(tau=None, prior=None)"
    )
    (job,) = jobs_of([recipe])
    do(job, store, How(CPU), lambda epoch, curves: None, lambda: False)
    return [Subject("adjusted", 0, store.get(recipe.key))]


def test_images_from_elsewhere_are_judged_by_the_metric_of_the_study(store, elsewhere, run):
    store.write_json("study.json", store.read_json("study.json") | {"metric": "nll"})
    (part,) = run(store, Asked(images=200, further=(str(elsewhere),)))["further"]
    assert part["metric"] == "nll" and all(m["score"]["mean"] > 0 for m in part["methods"])
    page = write_report(store).read_text()
    assert "Negative log-likelihood on photos" in page


def test_a_folder_that_is_not_there_or_not_of_the_task_is_said_at_once(store, elsewhere, tmp_path, run):
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


def test_errors_on_imagenet_c_are_relative_to_alexnets(store, tmp_path, run, runs_of):
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
