"""The studies that a path leads to."""

from __future__ import annotations

from pathlib import Path

from ..core import EquipoiseError
from ..store import StudyDocument


def study_folders(path: Path) -> list[Path]:
    """The folder itself where it holds a study; of a folder of studies, all of them by name."""
    if not path.is_dir():
        what = "a file" if path.exists() else "not there"
        raise EquipoiseError(f"{path} is {what}; give folders that 'equipoise run' wrote, such as runs/demo")
    folders = [path] if _has_study(path) else sorted(folder for folder in path.iterdir() if _has_study(folder))
    if not folders:
        raise EquipoiseError(f"{path} holds no study, nor do the folders in it; 'equipoise run' makes one")
    return folders


def _has_study(folder: Path) -> bool:
    return (folder / StudyDocument.FILE).is_file()
