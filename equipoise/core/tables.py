"""Rows and cells as pandas and notebooks want them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module
from typing import Any

from .errors import EquipoiseError
from .escaping import visible


def frame(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> Any:
    """The rows as a pandas DataFrame."""
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise EquipoiseError("to_frame needs pandas: pip install pandas; `rows` has the same as plain data") from None
    return pandas.DataFrame(rows, columns=list(columns))


def html_paragraphs(text: str) -> str:
    """Each line as a paragraph for a notebook; all text is escaped.

    >>> html_paragraphs("<a>\\nb")
    '<p>&lt;a&gt;</p><p>b</p>'
    """
    return "".join(f"<p>{escape(visible(line))}</p>" for line in text.split("\n"))


def html_table(header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """A plain table for a notebook; all text is escaped.

    >>> html_table(["<a>"], [[1]])
    '<table><thead><tr><th>&lt;a&gt;</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(visible(str(cell)))}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(visible(str(cell)))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
