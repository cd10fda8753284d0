"""Write docs/methods/NAME.md for every method from its docstring, and an index; `--check` only says what is stale.

A method that has no page yet is not stale: whoever adds a method need not write one, the next `make pages` does.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path

from equipoise.core import METHOD_KINDS, Card, cards

FOLDER = Path(__file__).parent / "methods"


def page(card: Card) -> str:
    """One screen: what it does, formula, plain use, recipe use, parameters, differences, reference."""
    doc = inspect.getdoc(card.factory) or ""
    depth = 3 if ".train." in card.factory.__module__ else 2
    module = ".".join(card.factory.__module__.split(".")[:depth])
    parts = [
        f"# `{card.name}`",
        f"*{card.kind}* · `from {module} import {card.factory.__name__}`"
        + (f" · [arXiv:{card.arxiv}](https://arxiv.org/abs/{card.arxiv}) ({card.year})" if card.arxiv else ""),
        markdown(doc),
        f'## In a recipe\n\n```toml\n{card.kind} = "{call(card)}"\n```',
    ]
    if card.companions:
        pairs = "\n".join(f'{dial} = "{value}"' for dial, value in card.companions.items())
        parts.append(f"Where you choose nothing else, it brings along:\n\n```toml\n{pairs}\n```")
    if card.neutral:
        pairs = ", ".join(f"`{name}={value!r}`" for name, value in card.neutral.items())
        parts.append(f"At {pairs} it is the plain baseline; a test checks it.")
    return "\n\n".join(parts) + "\n"


def call(card: Card) -> str:
    inner = [f"{n}={'…' if p.default is p.empty else repr(p.default)}" for n, p in card.parameters.items()]
    return f"{card.name}({', '.join(inner)})" if inner else card.name


def markdown(doc: str) -> str:
    """A docstring's sections as Markdown: math in $$, arguments as a list, examples as code."""
    doc = re.sub(
        r"^\.\. math::\s*(.+?)(?=\n\s*\n|\Z)", lambda m: f"$$\n{inspect.cleandoc(m[1])}\n$$", doc, flags=re.S | re.M
    )
    doc = re.sub(
        r"^Args:\n((?:[ \t]+.*\n?|\n)+)", lambda m: "## Parameters\n\n" + arguments(m[1]) + "\n", doc, flags=re.M
    )
    doc = re.sub(
        r"^Example:\n((?:[ \t]+.*\n?|\n)+)",
        lambda m: f"## Plain use\n\n```python\n{inspect.cleandoc(m[1])}\n```\n\n",
        doc,
        flags=re.M,
    )
    doc = re.sub(r"^Differs from the paper: ", "## Differs from the paper\n\n", doc, flags=re.M)
    doc = re.sub(r"^References?: ", "## Reference\n\n", doc, flags=re.M)
    return re.sub(r"``(.+?)``", r"`\1`", doc).strip()


def arguments(block: str) -> str:
    lines: list[str] = []
    for line in inspect.cleandoc(block).splitlines():
        if match := re.match(r"(\w+): (.*)", line):
            lines.append(f"- `{match[1]}`: {match[2]}")
        elif line.strip():
            lines.append(f"  {line.strip()}")
    return "\n".join(lines) + "\n"


def pages(with_page: Callable[[str], bool] = lambda name: True) -> dict[str, str]:
    """File name -> text, for all of our methods `with_page` and the index of these."""
    made, index = {}, ["# Methods\n"]
    for kind in METHOD_KINDS:
        ours = [c for c in cards(kind) if c.factory.__module__.startswith("equipoise.") and with_page(f"{c.name}.md")]
        if ours:
            index.append(f"## {kind}\n\n| method | what it does |\n|---|---|")
            index += [f"| [`{c.name}`]({c.name}.md) | {c.summary} |" for c in ours]
            index.append("")
        made |= {f"{c.name}.md": page(c) for c in ours}
    return {**made, "README.md": "\n".join(index).rstrip() + "\n"}


def differing(wanted: dict[str, str]) -> list[str]:
    """Names of pages whose text is not the wanted one, of those that are missing, and of those of methods now gone."""
    found = {p.name: p.read_text() for p in FOLDER.glob("*.md")}
    return sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))


def stale() -> list[str]:
    """Pages that do not say what the docstrings say."""
    return differing(pages(lambda name: (FOLDER / name).exists()))


def main() -> int:
    if "--check" in sys.argv:
        names = stale()
        print("\n".join(f"stale: docs/methods/{name}" for name in names) or "all pages are up to date")
        return bool(names)
    wanted = pages()
    names = differing(wanted)
    for name in names:
        if name in wanted:
            (FOLDER / name).write_text(wanted[name])
        else:
            (FOLDER / name).unlink()
    print(f"{len(names)} of {len(wanted)} pages rewritten")
    return 0


if __name__ == "__main__":
    sys.exit(main())
