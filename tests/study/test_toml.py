"""A TOML file of a user's: whatever is wrong with it is one sentence."""

import os

import pytest

from equipoise.core import EquipoiseError
from equipoise.study import Study, name_of, read_toml

WRONG = {
    "binary": (b"\x7fELF\x02\xb1", "not text in UTF-8"),
    "utf16": ('a = "x"'.encode("utf-16"), "save it as UTF-8"),
    "latin": (b'a = "\xff"', r"byte 5 is 0xff"),
    "nul": (b"a = 1\0", "is not valid TOML"),
    "large": (b"#" * 1_000_001, "more than 1,000,000 bytes"),
    "digits": (b"a = " + b"9" * 4301, "is not valid TOML: .*digits"),
    "deep": (b"a = " + b"[" * 50_000 + b"]" * 50_000, "nested too deeply"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_is_no_toml_is_told_in_one_line(tmp_path, case):
    content, message = WRONG[case]
    path = tmp_path / "asked.toml"
    path.write_bytes(content)
    with pytest.raises(EquipoiseError, match=message) as caught:
        read_toml(path)
    assert str(caught.value).startswith(str(path)) and str(caught.value).count(str(path)) == 1
    assert "\n" not in str(caught.value)


def test_what_is_no_file_is_told(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # reading it would wait for ever
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, message in (("none", "is not there"), ("pipe", "not a regular file"), ("loop", "is not there")):
        with pytest.raises(EquipoiseError, match=message):
            read_toml(tmp_path / name)


def test_a_name_that_no_disk_takes(tmp_path):
    with pytest.raises(EquipoiseError, match="is not there"):
        read_toml(tmp_path / ("x" * 300))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    path = tmp_path / "asked.toml"
    path.write_text("a = 1")
    path.chmod(0)
    with pytest.raises(EquipoiseError, match="cannot be read: Permission denied"):
        read_toml(path)


def test_marks_and_line_ends_of_other_systems_are_read(tmp_path):
    path = tmp_path / "asked.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1\r\nb = 'x'\r\n")
    assert read_toml(path) == {"a": 1, "b": "x"}


def test_a_folder_of_images_is_answered_with_a_study_to_copy(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
    with pytest.raises(EquipoiseError, match="is a folder") as caught:
        read_toml(tmp_path / "photos")
    assert f"'equipoise compare {tmp_path / 'photos'}' compares methods on the images in it" in str(caught.value)
    study = tmp_path / "copied.toml"
    study.write_text(str(caught.value).partition("\n\n")[2])
    assert "photos" in Study.from_toml(study).methods["plain"].task.name
    with pytest.raises(EquipoiseError, match=r"is a folder; give the path of a TOML file$"):
        read_toml(tmp_path / "photos" / "cat")


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("demo.toml", "demo"),
        ("my study (2).toml", "my study (2)"),
        ("a, b & c.toml", "a- b - c"),
        ("実験.toml", "実験"),
        ("...toml", "study"),
    ],
)
def test_a_study_without_a_name_has_that_of_its_file(tmp_path, file, name):
    assert name_of(tmp_path / file) == name
