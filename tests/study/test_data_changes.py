"""A study and its images: what changed is noticed, what moved is not, and data that cannot answer is refused."""

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from equipoise.cli import app
from equipoise.core import EquipoiseError
from equipoise.data import DataError, load_task
from equipoise.report import collect
from equipoise.store import Record, Store, now
from equipoise.study import Study, bound
from equipoise.study.binding import refuse_other_data
from equipoise.study.probe.subjects import subjects_of
from equipoise.train import Recipe, TaskChoice

Image = pytest.importorskip("PIL.Image")

STUDY = """
baseline = "plain"
seeds = [0]
[task]
name = "folder(path='photos', size=8)"
[base]
model = "cnn_small(width=4)"
epochs = 1
batch_size = 16
[methods.plain]
[methods.smooth]
loss = "label_smoothing"
"""
FOCAL = '\n[methods.focal]\nloss = "focal"\n'


def paint(base, counts, shift=0):
    rng = np.random.default_rng(shift)
    for c, (name, count) in enumerate(counts.items()):
        (base / name).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            pixels = np.clip(rng.normal(60 * (c + 1), 20, (8, 8, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(base / name / f"{i}.png")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a study and its images, which is not the working folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    paint(tmp_path / "place" / "photos", {"a": 10, "b": 10, "c": 10})
    (tmp_path / "place" / "study.toml").write_text(STUDY)
    return tmp_path / "place"


def invoke(place, *arguments):
    return CliRunner().invoke(app, ["run", str(place / "study.toml"), "-o", str(place / "out"), "-j", "1", *arguments])


def run(place, *arguments):
    done = invoke(place, *arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    return re.sub(r"\s+", " ", done.output)


def refused(place, message):
    done = invoke(place)
    assert isinstance(done.exception, EquipoiseError), (done.output, done.exception)
    assert re.search(message, str(done.exception)), str(done.exception)


def keys(place):
    return sorted(path.name for path in (place / "out" / "runs").glob("*"))


def trained(place):
    """The runs of the study as a worker would leave them, at no cost."""
    study, store = bound(Study.from_toml(place / "study.toml")), Store(place / "out").create()
    store.write_json("study.json", study.to_dict())
    for _, recipe in study.recipes():
        task = load_task(**recipe.task.__dict__, seed=recipe.seed)
        outputs = {
            part: {
                "logits": np.random.default_rng(0).normal(size=(len(split), task.num_classes)),
                "features": np.zeros((len(split), 2)),
                "labels": split.labels.numpy(),
            }
            for part, split in (("valid", task.valid), ("test", task.test))
        }
        about = {"class_names": task.class_names, "class_counts": tuple(task.class_counts.tolist())}
        cost = {"parameters": 1, "seconds": 1.0, "ended": now(), "versions": {}, "device": "CPU"}
        record = Record(recipe.key, recipe.to_dict(), "finished", data=task.fingerprint, **about, **cost)
        if not store.has(recipe.key):
            store.put(record, outputs)


def with_other_content(place, key, content):
    store = Store(place / "out")
    record, outputs = store.get(key), {"valid": store.valid(key), "test": store.test_sealed(key)}
    store.remove(key)
    recipe = {**record.recipe, "task": {**record.recipe["task"], "content": content}}
    store.put(replace(record, recipe=recipe), outputs)


def test_runs_on_replaced_images_are_never_compared(place):
    trained(place)
    before = keys(place)
    paint(place / "photos", {"a": 10, "b": 10, "c": 10}, shift=1)
    (place / "study.toml").write_text(STUDY + FOCAL)
    refused(place, r"2 runs in .*out saw other images than .*They are kept.*--out")
    assert keys(place) == before, "nothing was trained, nothing was lost"
    paint(place / "photos", {"a": 10, "b": 10, "c": 10})
    trained(place)
    assert "3 runs are in" in run(place) and set(before) < set(keys(place)), "with the old images they count again"


def test_a_class_less_is_other_data(place):
    trained(place)
    shutil.rmtree(place / "photos" / "c")
    refused(place, r"saw other images.*Classes then: a, b, c; now: a, b\.")


def test_a_moved_folder_keeps_its_runs(place):
    trained(place)
    (place / "photos").rename(place / "pictures")
    (place / "study.toml").write_text(STUDY.replace("photos", "pictures"))
    assert "2 runs are in" in run(place)
    for subject in subjects_of(Store(place / "out")):
        recipe = Recipe.from_dict(subject.record.recipe)
        assert recipe.key == subject.key and "pictures" in recipe.task.name, "an analysis reads the images there"


def test_moving_a_folder_forgets_no_comparison(place):
    """A method that was compared and is dropped still counts, wherever the images lie."""
    (place / "study.toml").write_text(STUDY + FOCAL)
    trained(place)
    run(place)
    (place / "photos").rename(place / "pictures")
    (place / "study.toml").write_text(STUDY.replace("photos", "pictures"))
    assert "1 method that was compared before (focal) is not in this study any more" in run(place)


def test_runs_of_a_version_that_recorded_no_content_are_not_mixed(place):
    trained(place)
    for key in keys(place):
        with_other_content(place, key, None)
    with pytest.raises(EquipoiseError, match="2 runs in .* did not record which images it saw"):
        refuse_other_data(bound(Study.from_toml(place / "study.toml")), Store(place / "out"))


def test_content_is_in_the_key_and_the_place_is_not():
    def key(content, path="photos", name="folder(path={path!r}, size=8)"):
        return Recipe.make({}, {"name": name.format(path=path), "content": content}).key

    assert key("one") != key("two") and key("one") == key("one", "/else/where")
    assert key("one") != key(None) and key(None) != key(None, "other")
    assert "content" in TaskChoice().__dict__ and Recipe.make().key == "6dd60f48cbf04b0a", "old keys stay"


def test_a_report_refuses_runs_of_unlike_data(place):
    trained(place)
    with_other_content(place, keys(place)[0], "0123456789abcdef")
    with pytest.raises(EquipoiseError, match=r"different data.*0123456789abcdef \(3 classes\): (plain|smooth), seed 0"):
        collect(Store(place / "out"))
    assert Store(place / "out").opened() is None, "its test results were not looked at"


def test_broken_images_are_told_before_anything_is_trained(place):
    for name in ("a/3.png", "b/4.png"):
        (place / "photos" / name).write_bytes(b"nothing")
    refused(place, r"2 files cannot be read as images(.|\n)*3\.png(.|\n)*4\.png")
    assert not keys(place), "a broken image is no failure of a method"


def test_a_class_that_no_test_image_is_of(place):
    (place / "photos" / "train").mkdir()
    for name in ("a", "b", "c"):
        (place / "photos" / name).rename(place / "photos" / "train" / name)
    paint(place / "photos" / "test", {"a": 3, "b": 3}, shift=3)
    trained(place)
    told = run(place)
    assert "No test image is of class c: nothing will be known of it, and averages over classes leave it out." in told
    said = "No test image is of class c: nothing here says how well it is recognised; averages over classes are over 2"
    assert said in told
    for name in ("report.html", "report.md"):
        assert said in re.sub(r"\s+", " ", (place / "out" / name).read_text())


def test_an_empty_test_set_is_refused(place):
    for part in ("train", "test"):
        (place / "photos" / part).mkdir()
    for name in ("a", "b", "c"):
        (place / "photos" / name).rename(place / "photos" / "train" / name)
        (place / "photos" / "test" / name).mkdir()
    refused(place, "test has no images")
    assert not (place / "out").exists()


def test_any_task_without_test_images_is_refused(monkeypatch):
    from equipoise.study import binding

    plain = binding.load_task
    monkeypatch.setattr(binding, "load_task", lambda *a, **k: plain(*a, **{**k, "test": False}))
    study = {"baseline": "a", "methods": {"a": {}, "b": {"loss": "focal"}}}
    with pytest.raises(DataError, match="digits has no test images"):
        bound(Study.from_dict(study))


def test_the_run_says_what_its_data_and_augmentation_are(place):
    paint(place / "photos", {"a": 35})
    trained(place)
    said = run(place)
    assert "3 classes" in said and "largest class has 3.57 times as many as the smallest (25 and 7)" in said
    assert "crop_flip(pad=4, flip=True)" in said and 'augment = "none"' in said and "mirror" in said
    page = (place / "out" / "report.html").read_text()
    assert "ratio 1<" not in page and "the largest class 3.57 times the smallest" in page


def test_a_folder_is_trained_on_with_names_that_are_no_text(place):
    try:
        (place / "photos" / "c").rename(place / "photos" / "c\udcff")
    except OSError:
        pytest.skip("this system allows names that are text only")
    run(place)
    (record, *_) = Store(place / "out").records()
    assert record.finished and record.class_names[-1] == "c\\udcff" and record.recipe["task"]["content"]
    assert "c\\udcff" in (place / "out" / "report.html").read_text()
