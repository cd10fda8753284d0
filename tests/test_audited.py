"""An audit beside the images is known to the study of them."""

import json

import pytest

from equipoise.front.audited import note_audit
from equipoise.store import Audited, Store


@pytest.fixture
def store(tmp_path):
    """A study of tmp_path/photos, as far as that matters here."""
    store = Store(tmp_path / "runs").create()
    recipe = {"task": {"name": f"folder(path={str(tmp_path / 'photos')!r})"}}
    asked = {"name": "x", "question": "?", "baseline": "a", "metric": "accuracy", "seeds": [0]}
    store.write_json("study.json", asked | {"methods": [{"name": "a", "recipe": recipe, "keys": ["k"]}]})
    return store


def audited(folder, images, **cases):
    findings = [{"kind": kind, "cases": [{}] * number} for kind, number in cases.items()]
    folder.mkdir(parents=True, exist_ok=True)
    plain = {"folder": str(images), "proposed_group": "(.+)_", "findings": findings}
    (folder / "audit.json").write_text(json.dumps(plain))


def test_an_audit_of_these_images_is_noted(store, tmp_path):
    note_audit(store)
    assert not store.holds(Audited)
    place = tmp_path / "audits" / "photos"
    audited(place, tmp_path / "others", duplicates=5)
    note_audit(store)
    assert not store.holds(Audited), "of other images"
    audited(place, tmp_path / "photos", duplicates=5, two_parts=2, torn_groups=1, labels=7)
    note_audit(store)
    assert store.document(Audited) == Audited(str(place), 5, 3, "(.+)_")
    (store.path / "audited.json").write_text("{}")
    note_audit(store)
    assert store.document(Audited).copies == 5, "a damaged note is written anew"
    audited(store.path / "audit", tmp_path / "photos")
    note_audit(store)
    assert store.document(Audited).copies == 0, "the audit that `compare` made comes first"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"folder": 3}', "null"])
def test_what_is_no_audit_is_passed_over(store, tmp_path, content):
    audited(tmp_path / "audits" / "photos", tmp_path / "photos")
    (tmp_path / "audits" / "photos" / "audit.json").write_text(content)
    note_audit(store)
    assert not store.holds(Audited)
