"""From a folder of images to a model: the whole way, small."""

import json

import numpy as np
import pytest

import equipoise
from equipoise.core import EquipoiseError
from equipoise.data import load_task
from equipoise.front.comparison import _task
from equipoise.study import Listener

Image = pytest.importorskip("PIL.Image")
datasets = pytest.importorskip("sklearn.datasets")


class Quiet(Listener):
    def __init__(self):
        self.said = []

    def say(self, text):
        self.said.append(text)


@pytest.fixture
def photos(tmp_path):
    """Three digits, 60 : 30 : 20, with a broken file and a copy."""
    images, labels = datasets.load_digits(return_X_y=True)
    for digit, number in ((0, 60), (1, 30), (2, 20)):
        folder = tmp_path / "photos" / f"digit{digit}"
        folder.mkdir(parents=True)
        for i, pixels in enumerate(images[labels == digit][:number]):
            grey = Image.fromarray((pixels.reshape(8, 8) * 15).astype(np.uint8))
            grey.resize((32, 32)).save(folder / f"{chr(97 + i % 26)}{i}.png")
    (tmp_path / "photos" / "digit0" / "broken.png").write_text("no image")
    return tmp_path / "photos"


@pytest.fixture
def without_pretraining(monkeypatch):
    small = {"model": "cnn_small(width=8)", "epochs": 2, "batch_size": 32, "lr": 0.05}
    monkeypatch.setattr("equipoise.front.comparison._is_pretrained", lambda: False)
    monkeypatch.setattr("equipoise.front.comparison.WHOLE", small)
    monkeypatch.setattr("equipoise.front.comparison.SCRATCH", 16)


@pytest.mark.slow
def test_the_whole_way(photos, tmp_path, without_pretraining):
    listener, out = Quiet(), tmp_path / "out"
    found = equipoise.compare(photos, minutes=60, out=out, workers=2, device="cpu", listener=listener)
    said = "\n".join(listener.said)
    assert "to compare" in said and "oversampling" in said and "shows every class equally often" in said
    assert "broken.png" in (out / "audit" / "leave_out.csv").read_text()
    assert {row["method"] for row in found.results.rows} == {candidate.name for candidate in found.candidates}
    promise = json.loads((out / "model" / "model.json").read_text())["promise"]
    assert promise["images"] == promise["groups"] == 22
    assert 0 <= promise["all_labels"]["low"] <= promise["all_labels"]["mean"] <= promise["all_labels"]["high"] <= 1
    assert str(found.model.description.promise) in (out / "model" / "README.md").read_text()
    told = equipoise.predict(out / "model", [photos / "digit1" / "a0.png", photos / "digit0" / "broken.png"])
    rows = list(told.rows())
    assert "digit" in str(rows[0]) and len(rows) == 2
    page = found.results.report().read_text()
    assert '<section id="confused"' in page and "data:image/jpeg;base64," in page
    records = sorted((out / "runs").iterdir())
    again = equipoise.compare(photos, minutes=60, out=out, workers=2, device="cpu", listener=Quiet())
    assert sorted((out / "runs").iterdir()) == records and again.results.rows == found.results.rows


def test_too_little_time(photos, tmp_path, without_pretraining):
    with pytest.raises(EquipoiseError, match="not even the first round.*give more --minutes"):
        equipoise.compare(photos, minutes=1e-6, out=tmp_path / "out", device="cpu", listener=Quiet())


def test_the_groups_of_a_table_are_kept_together(photos, tmp_path):
    names = sorted(path.relative_to(photos).as_posix() for path in photos.rglob("*.png"))
    rows = [f"{name},{name[:6]},{i // 3}" for i, name in enumerate(names)]
    (photos / "list.csv").write_text("\n".join(["path,label,group", *rows]))
    found = equipoise.audit(photos / "list.csv", features="pixels")
    task = _task(photos / "list.csv", found, None, tmp_path / "out")
    assert "group='group'" in task and "leave_out=" in task
    loaded = load_task(task, valid=0.2, decode=False)
    group = {name: i // 3 for i, name in enumerate(names)}
    sides = [
        {group[path.relative_to(photos.resolve()).as_posix()] for path in split.images.paths}
        for split in (loaded.train, loaded.valid, loaded.test)
    ]
    assert sum(map(len, sides)) == len(set.union(*sides)) > 30
