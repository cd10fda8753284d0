"""Write every study of the papers to studies/full, and take away those that no paper has any more."""

from __future__ import annotations

from pathlib import Path

from . import bias_loss, class_balanced, feature_weakening, feature_weakening_large, four_things, loss_functions
from .study_file import StudyFile

FOLDER = Path(__file__).parents[1] / "full"
PAPERS = (class_balanced, feature_weakening, feature_weakening_large, loss_functions, four_things, bias_loss)
PREFIXES = tuple(f"{paper.PREFIX}_" for paper in PAPERS)


def all_studies() -> list[StudyFile]:
    return [study for paper in PAPERS for study in paper.studies()]


def texts() -> dict[str, str]:
    """File name -> text."""
    return {f"{study.name}.toml": study.text() for study in all_studies()}


def main() -> None:
    wanted = texts()
    for path in FOLDER.glob("*.toml"):
        if path.name.startswith(PREFIXES) and path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text)
    print(f"{len(wanted)} studies in {FOLDER}")


if __name__ == "__main__":
    main()
