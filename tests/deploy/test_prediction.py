"""Image files and arrays: the same decoding as in training, unreadable files, tables."""

import csv
import io
import json

import numpy as np
import pytest
import torch
from PIL import Image

import equipoise
from equipoise import EquipoiseError
from equipoise.data import Frame, ImageFiles
from equipoise.deploy import Predictions, Preprocessing, predict
from equipoise.deploy.predictions import Writer
from equipoise.deploy.threads import in_threads


def test_files_give_what_their_pixels_give(model, task, photos):
    said = predict(model, photos)
    assert [name.rsplit("/", 1)[1] for name in said.images] == ["0.png", "1.png", "2.png", "2b.png"]
    wanted = model(task.test.images[:3])
    np.testing.assert_allclose(said.probabilities[:3], wanted.numpy(), atol=1e-6)
    assert said.labels[:3] == [model.class_names[i] for i in wanted.argmax(1)]


def test_what_cannot_be_read_stops_nothing(model, photos):
    (photos / "gone.png").symlink_to(photos / "nowhere.png")
    said = predict(model, [photos, photos / "missing.png", str(photos / "0.png")])
    errors = dict(zip(said.images, said.errors, strict=True))
    assert "none of PNG" in errors[str(photos / "2b.png")]
    assert errors[str(photos / "missing.png")] == "No such file or directory"
    assert "a link that leads nowhere" in errors[str(photos)]
    assert np.isnan(said.probabilities[3]).all() and said.labels[3] is None
    assert sum(why is None for why in said.errors) == 4
    assert repr(said) == "<Predictions: 4 images, 3 that could not be read>"


def test_arrays_and_a_prior(model, grey):
    plain, moved = predict(model, grey), predict(model, torch.from_numpy(grey), prior="uniform")
    assert plain.images == ("0", "1") and plain.errors == (None, None)
    np.testing.assert_allclose(plain.probabilities.sum(1), 1, atol=1e-6)
    np.testing.assert_allclose(moved.probabilities, model(torch.from_numpy(grey), torch.ones(10)), atol=1e-6)
    with pytest.raises(EquipoiseError, match="uint8"):
        predict(model, grey.astype(float))
    assert len(predict(model, grey[:0])) == 0


def test_a_saved_model_is_enough(model, photos, tmp_path):
    folder = model.save(tmp_path / "model")
    assert equipoise.predict(folder, photos).labels == predict(model, photos).labels
    with pytest.raises(EquipoiseError, match="holds no model"):
        predict(tmp_path, photos)


def test_tables(model, photos):
    said = predict(model, photos)
    row = said.rows(top=3)[0]
    assert list(row) == [
        "image", "prediction", "probability", "prediction_2", "probability_2", "prediction_3", "probability_3", "error",
    ]  # fmt: skip
    assert row["probability"] >= row["probability_2"] >= row["probability_3"]
    assert len(said.rows(top=99)[0]) == 22
    html = said._repr_html_()
    assert html.count("<tr>") == 5 and "none of PNG" in html
    try:
        import pandas  # noqa: F401
    except ImportError:
        with pytest.raises(EquipoiseError, match="pip install pandas"):
            said.to_frame()
    else:
        assert list(said.to_frame(top=2).columns)[-1] == "error"


def test_names_are_not_obeyed():
    said = Predictions(
        ("=cmd.png", "a\x1b[31m.png", "\udcff.png"),
        ("<b>", "-x"),
        np.array([[0.1, 0.9], [0.8, 0.2], [np.nan, np.nan]]),
        (None, None, "no"),
    )
    table, lines = io.StringIO(), io.StringIO()
    Writer(table, "csv", 1).write(said.rows())
    Writer(lines, "jsonl", 1).write(said.rows())
    rows = list(csv.reader(io.StringIO(table.getvalue())))
    assert rows[1] == ["'=cmd.png", "'-x", "0.9", ""] and "\x1b" not in table.getvalue()
    assert rows[3] == ["\\udcff.png", "", "", "no"]
    read = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert read[1]["image"] == "a\x1b[31m.png" and read[2]["prediction"] is None
    assert "&lt;b&gt;" in said._repr_html_() and "\x1b" not in said._repr_html_()


def test_grey_is_what_pillow_makes_of_colours():
    pixels = np.random.default_rng(0).integers(0, 256, (9, 9, 3), dtype=np.uint8)
    wanted = np.asarray(Image.fromarray(pixels).convert("L"))
    images = torch.from_numpy(pixels).permute(2, 0, 1)[None]
    got = Preprocessing(Frame(9), 1, (0.5,), (0.5,)).of_files(images)
    assert np.array_equal(got[0, 0].numpy(), wanted)
    assert Preprocessing(Frame(9), 3, (0.5,) * 3, (0.5,) * 3).of_files(images) is images
    with pytest.raises(EquipoiseError, match="2 channels"):
        Preprocessing(Frame(9), 2, (0.5,) * 2, (0.5,) * 2).of_files(images)


@pytest.mark.parametrize("frame", [Frame(6), Frame(6, resize=8, keep=10)])
def test_parts_are_what_the_training_reads(photos, frame):
    for i in range(3):
        Image.effect_noise((20, 12), 80).convert("RGB").save(photos / f"{i}.png")
    paths = sorted(photos.iterdir())
    parts = list(ImageFiles(paths, frame).readable(3))
    whole = [path for path in paths if path.name != "2b.png"]
    assert torch.equal(torch.cat([images for images, _ in parts]), ImageFiles(whole, frame)[:])
    assert [why is None for _, errors in parts for why in errors] == [True, True, True, False]
    assert list(ImageFiles([], frame).readable(3)) == []


def test_threads_change_nothing(monkeypatch):
    layer, images, before = torch.nn.Conv2d(1, 2, 3), torch.randn(40, 1, 8, 8), torch.get_num_threads()
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    got = in_threads(layer, images)
    monkeypatch.undo()
    torch.set_num_threads(before)
    torch.testing.assert_close(got, layer(images).detach())
