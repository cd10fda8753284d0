"""The numbers that papers print, from the files of studies/papers/published.

A file is about one paper. Each of its tables says

    table, place      where the numbers stand
    metric            what they are: "accuracy", "error" (100 minus accuracy), "valid_accuracy" (of validation images),
                      or "gain in …", points more than the method that `against` names; all in percent
    n                 of how many runs a number is the mean; left out where the paper does not say
    studies           the study of each column, by the name of its file in studies/full
    numbers           on each line a method of those studies, a bar, and its numbers; a dash stands for none, and
                      what follows ± is the spread
    [table.differs]   method -> in what our recipe is another one than the paper's; "*" stands for all methods. Where
                      that is so in some studies only: method -> pattern of their names -> in what
    [table.unsure]    method -> what is doubtful about the number itself

elsewhere.toml beside them has numbers of other papers on the same tasks, which the pictures show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ..core import EquipoiseError
from ..study import read_toml

GAIN = "gain in "
METRICS = ("accuracy", "error", "valid_accuracy")
ELSEWHERE = "elsewhere.toml"


@dataclass(frozen=True)
class Cell:
    """A printed number: where it stands, of which method of which study it is, and what is known about it."""

    table: str
    study: str
    method: str
    metric: str
    printed: str
    place: str
    n: int | None = None
    against: str | None = None
    differs: str | None = None
    unsure: str | None = None

    @property
    def value(self) -> float:
        """In percent, as accuracy or as a gain in accuracy."""
        number = float(self.printed.partition("±")[0])
        return 100 - number if self.metric == "error" else number

    @property
    def rounding(self) -> float:
        """How far rounding may have moved it: half a unit of the last digit.

        >>> Cell("table 2", "s", "Softmax", "error", "29.64", "").rounding
        0.005
        """
        _, _, decimals = self.printed.partition("±")[0].partition(".")
        return float(0.5 * 10 ** -len(decimals))

    @property
    def measured(self) -> str:
        """The metric of a record that it is compared with."""
        name = self.metric.removeprefix(GAIN)
        return "accuracy" if name == "error" else name

    @property
    def told(self) -> str:
        """For people: as a value of `measured`, with what is printed where that is something else."""
        number, _, spread = self.printed.partition("±")
        told = f"{float(number):+g}".replace("-", "−") if self.against else number
        if self.metric == "error":
            told = f"{self.value:.{len(number.partition('.')[2])}f} (error {number})"
        return f"{told} ± {spread}" if spread else told


@dataclass(frozen=True)
class Paper:
    """A paper's name, the file it is in, its reference, and its cells, table by table."""

    name: str
    file: str
    reference: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Point:
    """A method of a paper that Equipoise is not built on, what is known of its numbers, and those: picture -> %."""

    method: str
    said: str
    accuracies: Mapping[str, float]


def read_elsewhere(folder: Path) -> list[Point]:
    """The numbers of other papers, if the folder has any."""
    file = folder / ELSEWHERE
    if not file.exists():
        return []
    try:
        return [_point(dict(plain)) for plain in read_toml(file)["point"]]
    except (KeyError, TypeError, ValueError) as error:
        raise EquipoiseError(f"{file}: {error}") from None


def _point(plain: dict[str, Any]) -> Point:
    method, said = str(plain.pop("method")), str(plain.pop("said"))
    return Point(method, said, {name: float(value) for name, value in plain.items()})


def read_papers(folder: Path) -> list[Paper]:
    """All papers of a folder, by the names of their files."""
    files = sorted(file for file in folder.glob("*.toml") if file.name != ELSEWHERE)
    if not files:
        raise EquipoiseError(f"{folder} has no files of published numbers; in a checkout, studies/papers/published has")
    return [read_paper(file) for file in files]


def read_paper(file: Path) -> Paper:
    """One file of published numbers."""
    plain = read_toml(file)
    try:
        cells = tuple(cell for table in plain["table"] for cell in _cells(table))
        return Paper(plain["paper"], file.stem, plain["reference"].strip(), cells)
    except (KeyError, ValueError) as error:
        raise EquipoiseError(f"{file}: {error}") from None


def _cells(table: Mapping[str, Any]) -> Iterator[Cell]:
    place = f"{table['table']}, {table['place']}"
    metric, studies = table["metric"], table["studies"]
    if metric.removeprefix(GAIN) not in METRICS or (metric.startswith(GAIN) != ("against" in table)):
        raise ValueError(f"{place}: metric is {metric!r}; known are {', '.join(METRICS)}, and gains against a method")
    rows = printed_rows(table["numbers"])
    for about in ("differs", "unsure"):
        _check_names(f"{place}: {about}", table.get(about, {}), rows.keys(), studies)
    for method, numbers in rows.items():
        if len(numbers) != len(studies):
            raise ValueError(f"{place}: {method} has {len(numbers)} numbers for {len(studies)} studies")
        for study, printed in zip(studies, numbers, strict=True):
            if printed != "-":
                yield Cell(
                    table["table"],
                    study,
                    method,
                    metric,
                    printed,
                    table["place"],
                    table.get("n"),
                    table.get("against"),
                    _about(table, "differs", method, study),
                    _about(table, "unsure", method, study),
                )


def _check_names(where: str, about: Mapping[str, Any], methods: Set[str], studies: Sequence[str]) -> None:
    """Nothing is said of a method or a study that the table does not have."""
    if unknown := about.keys() - methods - {"*"}:
        raise ValueError(f"{where} names {', '.join(sorted(unknown))}, which no row is of")
    for pattern in (pattern for said in about.values() if isinstance(said, Mapping) for pattern in said):
        if not any(fnmatchcase(study, pattern) for study in studies):
            raise ValueError(f"{where} names {pattern}, which is the name of no study")


def _about(table: Mapping[str, Any], what: str, method: str, study: str) -> str | None:
    methods = table.get(what, {})
    said = methods.get(method, methods.get("*"))
    if isinstance(said, Mapping):
        return next((text for pattern, text in said.items() if fnmatchcase(study, pattern)), None)
    return said


def printed_rows(text: str) -> dict[str, list[str]]:
    """A printed table: on each line the name of a row, a bar, and its numbers.

    >>> printed_rows("ERM | 71.1 65.3\\nMFW | 78.5 -")
    {'ERM': ['71.1', '65.3'], 'MFW': ['78.5', '-']}
    """
    rows = (line.split("|") for line in text.strip().splitlines())
    return {name.strip(): numbers.split() for name, numbers in rows}
