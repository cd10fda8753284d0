"""An audit knows whether the images are still those that it saw."""

import os
import shutil

import pytest

from equipoise.auditing import Changes, audit, changes_since


@pytest.fixture
def audited(tmp_path, written, monkeypatch):
    """A folder of photographs, one of them broken, and its audit; two names that a CSV must quote."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    photos = tmp_path / "photos"
    written(photos, [4, 4])
    (photos / "digit0" / "broken.png").write_bytes(b"no image")
    for name in ("=1,2.png", "two\nlines.png"):
        shutil.copy(next((photos / "digit1").iterdir()), photos / "digit1" / name)
    audit(photos, features="none", device="cpu").write(tmp_path / "audit")
    return photos, tmp_path / "audit"


def test_nothing_has_changed(audited):
    photos, place = audited
    assert changes_since(place, photos) == Changes()
    for path in photos.rglob("*.png"):  # other times, the same content
        os.utime(path, (0, 0))
    assert not changes_since(place, photos)
    shutil.copytree(photos, photos.with_name("elsewhere"))
    assert not changes_since(place, photos.with_name("elsewhere"))


def test_each_change_is_found(audited, picture):
    photos, place = audited
    picture(0).save(photos / "digit1" / "new.png")
    (photos / "digit1" / "=1,2.png").unlink()
    broken = photos / "digit0" / "broken.png"
    status = broken.stat()
    broken.write_bytes(b"an image")  # of the same size
    os.utime(broken, ns=(status.st_atime_ns, status.st_mtime_ns))
    found = changes_since(place, photos)
    assert found == Changes(("digit1/new.png",), ("digit1/=1,2.png",), ("digit0/broken.png",))
    assert str(found) == "1 image was added, 1 image was removed, 1 image was changed"


def test_an_audit_that_does_not_tell_what_it_saw(audited):
    photos, place = audited
    (place / "files.csv").unlink()
    assert changes_since(place, photos) is None
