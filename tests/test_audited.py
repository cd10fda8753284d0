"""An audit beside the images is known to the study of them."""

import json

import pytest

from equipoise.front.audited import note_audit, outdated_audits
from equipoise.store import Audited, Store
from equipoise.study import Study


@pytest.fixture
def store(tmp_path):
    """A study of tmp_path/photos, as far as that matters here."""
    (tmp_path / "photos").mkdir()
    store = Store(tmp_path / "runs").create()
    recipe = {"task": {"name": f"folder(path={str(tmp_path / 'photos')!r})"}}
    asked = {"name": "x", "question": "?", "baseline": "a", "metric": "accuracy", "seeds": [0]}
    store.write_json("study.json", asked | {"methods": [{"name": "a", "recipe": recipe, "keys": ["k"]}]})
    return store


def audited(folder, images, saw="path,sha256\n", **cases):
    findings = [{"kind": kind, "cases": [{}] * number} for kind, number in cases.items()]
    folder.mkdir(parents=True, exist_ok=True)
    plain = {"folder": str(images), "proposed_group": "(.+)_", "findings": findings}
    (folder / "audit.json").write_text(json.dumps(plain))
    (folder / "files.csv").write_text(saw)


def test_an_audit_of_these_images_is_noted(store, tmp_path):
    note_audit(store)
    assert not store.holds(Audited)
    place = tmp_path / "audits" / "photos"
    audited(place, tmp_path / "others", duplicates=5)
    note_audit(store)
    assert not store.holds(Audited), "of other images"
    audited(place, tmp_path / "photos", duplicates=5, two_parts=2, torn_groups=1, labels=7)
    note_audit(store)
    noted = store.document(Audited)
    assert (noted.place, noted.copies, noted.torn, noted.group) == (str(place), 5, 3, "(.+)_")
    (store.path / "audited.json").write_text("{}")
    note_audit(store)
    assert store.document(Audited).copies == 5, "a damaged note is written anew"
    audited(store.path / "audit", tmp_path / "photos")
    note_audit(store)
    assert store.document(Audited).copies == 0, "the audit that `compare` made comes first"


def test_an_audit_that_saw_other_images_is_told(store, tmp_path):
    photos, place = tmp_path / "photos", tmp_path / "elsewhere"
    (photos / "a").mkdir()
    (photos / "a" / "new.png").write_bytes(b"")
    audited(place, photos)
    task = {"name": f"folder(path={str(photos)!r}, groups={str(place / 'groups.csv')!r})"}
    study = Study.from_dict({"baseline": "a", "task": task, "methods": {"a": {}, "b": {"loss": "ldam"}}})
    said = f"1 image was added since the audit in {place}"
    assert outdated_audits(study, store) == [f"{said}; run 'equipoise audit' again."]
    (place / "files.csv").unlink()
    assert "does not tell which images it saw" in outdated_audits(study, store)[0]
    audited(place, photos, saw="path,sha256\na/new.png,\n")  # it could not be read
    assert outdated_audits(study, store) == []


def test_what_was_noted_stays_when_images_change_later(store, tmp_path):
    """The study saw them as they were; a new audit is noted anew."""
    photos, place = tmp_path / "photos", tmp_path / "audits" / "photos"
    audited(place, photos)
    note_audit(store)
    (photos / "a").mkdir()
    (photos / "a" / "new.png").write_bytes(b"")
    note_audit(store)
    assert store.document(Audited).outdated == ""
    audited(place, photos, saw="path,sha256\na/old.png,\n")
    note_audit(store)
    said = f"1 image was added, 1 image was removed since the audit in {place}"
    assert store.document(Audited).outdated == said
    photos.rename(tmp_path / "gone")
    note_audit(store)
    assert store.document(Audited).outdated == said


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"folder": 3}', "null"])
def test_what_is_no_audit_is_passed_over(store, tmp_path, content):
    audited(tmp_path / "audits" / "photos", tmp_path / "photos")
    (tmp_path / "audits" / "photos" / "audit.json").write_text(content)
    note_audit(store)
    assert not store.holds(Audited)
