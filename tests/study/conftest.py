"""A store that a study has not been written to, nor even made."""

import pytest

from equipoise.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "s")
