"""Tests keep their index of files to themselves."""

import pytest


@pytest.fixture(autouse=True)
def _own_index(tmp_path_factory, monkeypatch):
    place = tmp_path_factory.mktemp("index")
    monkeypatch.setattr("equipoise.data.sources._files.cache_folder", lambda: place)
    return place
