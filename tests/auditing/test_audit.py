"""The whole audit of small folders: what is planted is found, what is broken stops nothing."""

import json
import os
import shutil
import zlib

import numpy as np
import pytest

import equipoise
from equipoise.auditing import audit
from equipoise.auditing import features as look_features
from equipoise.core import EquipoiseError
from equipoise.data import load_task

Image = pytest.importorskip("PIL.Image")
ImageEnhance = pytest.importorskip("PIL.ImageEnhance")


def quick(path, **options):
    return audit(path, features="none", device="cpu", **options)


def cases(found, kind):
    return [row for finding in found.findings if finding.kind == kind for row in finding.rows]


def files(found, kind):
    """The names of the images of each case."""
    return [tuple(found.facts.items[i].name for i in row.images) for row in cases(found, kind)]


def test_planted_copies_and_broken_files_are_found(tmp_path, written):
    """At least 95 % of resized, re-encoded and brightened copies, all broken files, few false pairs."""
    names = sorted(written(tmp_path, [30] * 10))
    rng = np.random.default_rng(0)
    originals = rng.permutation(names)[:80].tolist()
    for i, name in enumerate(originals):
        image, copy = Image.open(tmp_path / name), tmp_path / name.replace(".png", "-copy.png")
        if i % 4 == 0:
            image.resize((48, 48) if i % 8 else (24, 24), Image.BICUBIC).save(copy)
        elif i % 4 == 1:
            image.save(copy.with_suffix(".jpg"), quality=70)
        else:
            ImageEnhance.Brightness(image).enhance(0.9 if i % 4 == 2 else 1.1).save(copy)
    broken = [name for name in names if name not in originals][:12]
    for i, name in enumerate(broken):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes((b"", b"no image", content[: len(content) // 2])[i % 3])
    found = quick(tmp_path)
    assert sorted(row.text.split(":")[0] for row in cases(found, "unreadable")) == sorted(broken)
    sets = files(found, "duplicates") + files(found, "two_classes")
    planted = [s for s in sets if len({name.split("-")[0].removesuffix(".png") for name in s}) == 1]
    assert len(planted) >= 0.95 * len(originals)
    assert len(sets) - len(planted) <= 3


def test_the_same_image_in_two_parts_and_under_two_labels(tmp_path, written):
    names = sorted(written(tmp_path / "train", [6] * 3))
    written(tmp_path / "test", [4] * 3, seed=1)
    for part in ("train", "test"):
        for path in (tmp_path / part).rglob("*.png"):
            if part == "test" and path.relative_to(tmp_path / "test").as_posix() in names:
                path.unlink()
    shutil.copy(tmp_path / "train" / names[0], tmp_path / "test" / "digit0" / "seen.png")
    Image.open(tmp_path / "train" / names[1]).save(tmp_path / "train" / "digit2" / "other.jpg", quality=70)
    found = quick(tmp_path)
    assert files(found, "two_parts") == [("test/digit0/seen.png", f"train/{names[0]}")]
    assert files(found, "two_classes") == [(f"train/{names[1]}", "train/digit2/other.jpg")]
    assert found.is_serious and "the same file" in cases(found, "two_parts")[0].text
    assert [row["train"] for row in found.classes] == [6, 6, 7]


def test_every_kind_of_image_is_told(tmp_path, written):
    written(tmp_path, [4, 4])
    rng = np.random.default_rng(0)
    noise = lambda *shape: Image.fromarray(rng.integers(0, 255, shape, dtype=np.uint8))  # noqa: E731
    place = tmp_path / "digit0"
    noise(8, 40, 3).save(place / "tiny.png")
    Image.new("RGB", (4100, 4100), (9, 9, 200)).save(place / "huge.png")
    Image.new("L", (40, 40), 7).save(place / "blank.png")
    Image.new("CMYK", (40, 40), (3, 100, 20, 3)).save(place / "cmyk.jpg")
    Image.fromarray((np.arange(1600).reshape(40, 40) * 40).astype(np.uint16)).save(place / "deep.png")
    noise(30, 50, 4).save(place / "alpha.png")
    noise(30, 50, 3).save(place / "moves.gif", save_all=True, append_images=[noise(30, 50, 3)])
    exif = Image.Exif()
    exif[0x0112] = 6
    noise(30, 50, 3).save(place / "turned.jpg", exif=exif)
    (place / "phone.HEIC").write_bytes(b"")
    (place / "page.jpg").write_bytes(b"<!DOCTYPE html><p>404")
    (place / "phone.jpg").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0")
    found = quick(tmp_path)
    for kind, name in {
        "tiny": "tiny.png",
        "huge": "huge.png",
        "cmyk": "cmyk.jpg",
        "16-bit": "deep.png",
        "transparent": "alpha.png",
        "animated": "moves.gif",
        "turned": "turned.jpg",
    }.items():
        assert files(found, kind) == [(f"digit0/{name}",)], kind
    assert ("digit0/blank.png",) in files(found, "blank")
    assert len(files(found, "coloured")) == 6 and not files(found, "grey"), "the rarer of the two is told"
    turned = next(row for row in found.files if row["file"] == "digit0/turned.jpg")
    assert (turned["width"], turned["height"]) == (30, 50)
    assert cases(found, "foreign")[0].text.startswith("digit0/phone.HEIC: HEIC: save it as JPEG or PNG")
    problems = {row.text for row in cases(found, "unreadable")}
    assert problems == {
        "digit0/page.jpg: it is a web page, perhaps a failed download",
        "digit0/phone.jpg: it is HEIC in spite of its name: save it as JPEG or PNG",
    }


def test_broken_pixels_are_noticed_whatever_else_is_read(tmp_path, written):
    """Pillow reads the pixels of a PNG when it looks for EXIF notes, and a second time gives black ones."""
    (name, *_) = sorted(written(tmp_path, [4, 4]))
    whole = (tmp_path / name).read_bytes()
    start = whole.index(b"IDAT") + 4
    length = int.from_bytes(whole[start - 8 : start - 4], "big")
    data = bytearray(whole[start : start + length])
    data[2:6] = b"\xff\xff\xff\xff"  # no block of deflate
    crc = zlib.crc32(b"IDAT" + data).to_bytes(4, "big")
    (tmp_path / name).write_bytes(whole[:start] + data + crc + whole[start + length + 4 :])
    assert [row.text.split(":")[0] for row in cases(quick(tmp_path), "unreadable")] == [name]


def test_films_are_proposed_and_luck_is_not(tmp_path, written, digits, picture):
    rng = np.random.default_rng(0)
    for c in range(2):
        (tmp_path / "films" / f"c{c}").mkdir(parents=True)
        for film in range(8):
            row = int(rng.permutation(np.flatnonzero(digits[1] == c))[0])
            for frame in range(4):
                shift = np.roll(np.asarray(picture(row)), frame, axis=1)
                Image.fromarray(shift).save(tmp_path / "films" / f"c{c}" / f"{film:05}_{frame:05}.png")
    found = quick(tmp_path / "films")
    assert found.facts.proposal.pattern == "(.+)_[0-9]+" and found.facts.proposal.groups == 16
    assert "group = '(.+)_[0-9]+'" in next(f.meaning for f in found.findings if f.kind == "groups")
    for film in range(8):  # more copies than frames that are alike
        shutil.copy(tmp_path / "films" / "c0" / f"{film:05}_00000.png", tmp_path / "films" / "c0" / f"copy{film}.png")
    assert quick(tmp_path / "films").facts.proposal.groups == 16
    rows = written(tmp_path / "luck", [20, 20])
    for i, name in enumerate(rows):
        path = tmp_path / "luck" / name
        path.rename(path.with_name(f"x{i % 5}_{i}.png"))
    assert quick(tmp_path / "luck").facts.proposal is None


def test_groups_csv_keeps_copies_on_one_side(tmp_path, written):
    base = tmp_path / "photos"
    for name in sorted(written(base, [20, 20])):
        Image.open(base / name).save((base / name).with_suffix(".jpg"), quality=70)
    found = quick(base)
    found.write(tmp_path / "out")
    task = load_task(f"folder(path={str(base)!r}, size=8, groups={str(tmp_path / 'out' / 'groups.csv')!r})")
    splits = [task.train, task.valid, task.test]
    assert sum(map(len, splits)) == 80
    for i, split in enumerate(splits):
        for other in splits[i + 1 :]:
            gap = (split.images[:, None].int() - other.images[None].int()).abs().flatten(2).max(2).values
            assert int(gap.min()) > 20, "no image is on both sides"


def test_leave_out_csv_lets_a_task_be_read(tmp_path, written):
    base = tmp_path / "photos"
    written(base, [6, 6])
    for name in ("=1+1.png", "two\nlines.png"):
        (base / "digit0" / name).write_bytes(b"no image")
    (base / "=digit2").mkdir()
    (base / "=digit2" / "a,b.png").write_bytes(b"")
    shutil.copy(next((base / "digit1").iterdir()), base / "=digit2")
    quick(base).write(tmp_path / "out")
    listing = tmp_path / "out" / "leave_out.csv"
    assert listing.read_text() == 'path\n"./=digit2/a,b.png"\ndigit0/=1+1.png\n"digit0/two\nlines.png"\n'
    task = load_task(f"folder(path={str(base)!r}, size=8, leave_out={str(listing)!r})")
    assert sum(len(split) for split in (task.train, task.valid, task.test)) == 13


def test_groups_that_were_given(tmp_path, written):
    names = sorted(written(tmp_path / "train", [4, 4]))
    (tmp_path / "test" / "digit0").mkdir(parents=True)
    shutil.move(tmp_path / "train" / names[0], tmp_path / "test" / names[0])
    found = quick(tmp_path, group="/(digit.)/")
    assert [row.text.split(":")[0] for row in cases(found, "torn_groups")] == ["digit0"]
    assert found.groups_csv().count("\n") == 9


def test_a_table_of_images(tmp_path, written):
    names = sorted(written(tmp_path / "images", [5, 5]))
    kinds, parts = ("even", "odd"), ("test", "train")
    lines = [f"images/{name},{kinds[int(name[5])]},{parts[i % 2]}" for i, name in enumerate(names)]
    lines += ["images/gone.png,odd,train", "../outside.png,odd,train", lines[0]]
    (tmp_path.parent / "outside.png").write_bytes(b"")
    (tmp_path / "list.csv").write_text("\n".join(["file_name,label,split", *lines]))
    found = quick(tmp_path / "list.csv")
    assert found.facts.listing.class_names == ("even", "odd") and len(found.files) == 10
    assert [row["train"] + row["test"] for row in found.classes] == [5, 5]
    told = " ".join(row.text for row in cases(found, "layout"))
    assert "gone.png is named by the table" in told and "leads out of" in told and "twice" in told
    (tmp_path / "images" / "metadata.csv").write_text("\n".join(["file_name,label", *(f"{n},x{n[5]}" for n in names)]))
    assert quick(tmp_path / "images").facts.listing.class_names == ("x0", "x1")
    (tmp_path / "images" / "metadata.csv").write_text("file_name,caption\na,b\n")
    assert quick(tmp_path / "images").facts.listing.class_names == ("digit0", "digit1"), "captions are no labels"


def test_parquet_needs_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(EquipoiseError, match="needs pyarrow: pip install pyarrow"):
        audit(tmp_path / "x.parquet")


def test_odd_folders_are_told_not_refused(tmp_path, written):
    written(tmp_path, [3, 3])
    (tmp_path / "digit0" / "out.png").symlink_to("/etc/hostname")
    (tmp_path / "digit2").mkdir()
    Image.new("L", (30, 30)).save(tmp_path / "beside.png")
    found = quick(tmp_path)
    assert "leads out of the folder" in cases(found, "layout")[0].text
    assert [row.text for row in cases(found, "empty_class")] == ["digit2"]
    assert files(found, "no_class") == [("beside.png",)]
    (tmp_path / "test").mkdir()
    assert "no train folder" in " ".join(row.text for row in cases(quick(tmp_path), "layout"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_pipes_are_not_waited_for(tmp_path, written):
    written(tmp_path, [3, 3])
    os.mkfifo(tmp_path / "digit0" / "pipe.png")
    assert "pipe.png is not a regular file" in cases(quick(tmp_path), "layout")[0].text


def test_labels_are_judged_by_a_pretrained_network_or_by_pixels(tmp_path, written, monkeypatch):
    names = sorted(written(tmp_path, [12, 12]))
    (tmp_path / names[0]).rename(tmp_path / "digit1" / "wrong.png")

    class Fake:
        def __init__(self, *model):
            pass

        def kept_features(self, images, cache, content, progress):
            return images[:].float().mean(1)[:, ::16, ::16].flatten(1)

    monkeypatch.setattr(look_features, "Backbone", Fake)
    found = audit(tmp_path, device="cpu")
    assert files(found, "labels")[0] == ("digit1/wrong.png",)
    assert "judged by features of efficientnet_lite0" in found.about_labels

    def missing(*model):
        raise EquipoiseError("pip install something")

    monkeypatch.setattr(look_features, "Backbone", missing)
    found = audit(tmp_path, device="cpu")
    assert files(found, "labels")[0] == ("digit1/wrong.png",)
    assert "judged by small pixels, as a pretrained network could not be used (pip install" in found.about_labels


def test_an_empty_folder(tmp_path):
    found = quick(tmp_path)
    assert found.summary == "0 images of 0 classes" and not found.is_serious
    assert "What is in" in found.write(tmp_path / "out").read_text()


def test_hostile_names_are_text(tmp_path, written):
    written(tmp_path, [3, 3])
    bad = tmp_path / "<script>alert(1)<b>"
    bad.mkdir()
    for i in range(2):
        shutil.copy(next((tmp_path / "digit0").iterdir()), bad / f"=x\x1b[31m\u202e{i}.png")
    found = quick(tmp_path)
    page = found.write(tmp_path / "out").read_text()
    assert "<script>alert" not in page and "\x1b" not in page and "\u202e" not in page and "data:image/jpeg" in page
    assert "<script>" not in found._repr_html_() and "two labels" in found._repr_html_()
    plain = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert plain["images"] == 8 and plain["serious"]


def test_the_front_door_and_mistakes(tmp_path, written):
    written(tmp_path, [3, 3])
    found = equipoise.audit(tmp_path, features="none")
    assert isinstance(found, equipoise.Audit) and repr(found).startswith(tmp_path.name)
    with pytest.raises(EquipoiseError, match="is not there; give a folder"):
        equipoise.audit(tmp_path / "absent")
    with pytest.raises(EquipoiseError, match="features"):
        equipoise.audit(tmp_path, features="all")
    with pytest.raises(EquipoiseError, match="is no regular expression"):
        equipoise.audit(tmp_path, group="(")


def test_progress_is_told_and_stops_at_once(tmp_path, written):
    written(tmp_path, [5, 5])
    told = []
    quick(tmp_path, progress=lambda *news: told.append(news))
    assert ("reading images", 10, 10) in told and ("comparing images", 10, 10) in told

    def stop(*news):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        quick(tmp_path, progress=stop)
