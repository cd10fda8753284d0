"""Pictures of classes that are taken for one another."""

import base64
import json

import pytest

from equipoise.report import sections_of, write_report
from equipoise.store import Confused, ConfusedPair

PICTURE = base64.b64encode(b"\xff\xd8\xff\xe0 a picture").decode()


def pair(**changes):
    given = {
        "true": "two",
        "other": "one",
        "share": 0.125,
        "of_true": (PICTURE,),
        "of_other": (),
        "mistaken": (PICTURE,),
    }
    return ConfusedPair(**given | changes)


def keys_of(results, name):
    method = next(method for method in results.methods if method.name == name)
    return tuple(run.key for run in method.runs if run.finished)


def section(store, results):
    return next((section for section in sections_of(store, results) if section.name == "confused"), None)


def test_pictures_are_shown_with_escaped_names(store, results):
    store.write(Confused("plain", keys_of(results, "plain"), (pair(true="<b>two\u202e"),)))
    page = write_report(store).read_text()
    assert page.count(f'src="data:image/jpeg;base64,{PICTURE}"') == 2
    assert "&lt;b&gt;two\\u202e taken for one: 12.5" in page and "<b>two" not in page and "\u202e" not in page
    assert "img-src data:" in page


def test_pictures_of_other_runs_are_not_shown(store, results):
    store.write(Confused("plain", keys_of(results, "plain")[:-1], (pair(),)))
    assert section(store, results) is None
    store.write(Confused("gone", (), (pair(),)))
    assert section(store, results) is None


@pytest.mark.parametrize("picture", ['"><script>', "AAAA", "\u202e"])
def test_what_is_no_picture_is_refused(store, results, picture):
    with pytest.raises(ValueError):
        pair(mistaken=(picture,))
    store.write(Confused("plain", keys_of(results, "plain"), (pair(),)))
    plain = json.loads((store.path / "confused.json").read_text().replace(PICTURE, "?"))
    plain["pairs"][0]["mistaken"] = [picture]
    store.write_json("confused.json", plain)
    assert section(store, results).sentence.startswith("This cannot be shown: ")
    assert "<script>" not in section(store, results).sentence


def test_a_study_without_pictures_has_no_such_section(store, results):
    assert section(store, results) is None
