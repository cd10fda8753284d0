"""The command line of simulations: sections of a page of Markdown by name, each with so many studies a row."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping


def print_sections(
    sections: Mapping[str, Callable[[int], Iterator[str]]], description: str | None, studies: int = 2000
) -> None:
    """The sections asked for, or all; `description` is what --help says, `studies` how many a row has unless told."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", choices=[[], *sections], metavar="SECTION")
    parser.add_argument("--studies", type=int, default=studies)
    asked = parser.parse_args()
    for name in asked.sections or sections:
        print(f"\n## {name}, {asked.studies} studies a row\n")
        for line in sections[name](asked.studies):
            print(line, flush=True)
