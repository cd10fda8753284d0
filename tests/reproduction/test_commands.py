"""`equipoise records` and `equipoise tables`, called as the command line calls them."""

import pytest

from equipoise.cli.reproduce import records, tables
from equipoise.core import EquipoiseError
from equipoise.reproduction import read_records
from equipoise.reproduction.pages import BEGIN, END

from .conftest import document


@pytest.fixture
def folder(store):
    """As `equipoise run` leaves it."""
    store.write(document())
    return store.path


def test_from_a_folder_to_records_to_tables(folder, tmp_path, capsys):
    records(folder, to=tmp_path / "records", peek=False)
    assert len(read_records(tmp_path / "records" / "small.jsonl")["small"].runs) == 6
    records(tmp_path / "records" / "small.jsonl", to=tmp_path / "copy", peek=False)
    assert (tmp_path / "copy" / "small.jsonl").read_bytes() == (tmp_path / "records" / "small.jsonl").read_bytes()
    (tmp_path / "README.md").write_text(f"{BEGIN}\n{END}\n")
    with pytest.raises(EquipoiseError, match="has no files of published numbers"):
        tables(tmp_path, published=tmp_path)
    assert "small: 6 runs in" in capsys.readouterr().out


def test_a_study_that_has_not_ended_is_recorded_with_peek_only(folder, store, tmp_path):
    store.remove("focal2")
    with pytest.raises(EquipoiseError, match="1 of 6 runs are still to do"):
        records(folder, to=tmp_path / "records", peek=False)
    records(folder, to=tmp_path / "records", peek=True)
    assert len(read_records(tmp_path / "records")["small"].runs) == 5
