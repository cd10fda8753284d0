"""Data sets that this machine may have are hidden."""

import pytest


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """Hides data sets that this machine may have."""
    monkeypatch.delenv("EQUIPOISE_DATA", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_DIRS", str(tmp_path / "share"))
