"""audit.html: one page that needs nothing else, with small copies of the images that are spoken of."""

from __future__ import annotations

import base64
import io
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import escape

from ..core.escaping import visible
from ..data import Frame
from ..data.decode import import_pillow, read_image
from ..report.render.shell import rendered
from ..report.render.svg import both
from .figure import class_plot
from .findings import Finding, Row

if TYPE_CHECKING:
    from .result import Audit

PICTURES = 60  # cases of a finding that are shown with images
COPIES = 8  # images of one case
LINES = 2000  # further cases of a finding; all are in audit.json
SIDE = 96  # pixels of a small copy


def render(audit: Audit) -> str:
    """The page. All text is escaped, and its own policy lets only its own script and style run."""
    content = {
        "title": f"Audit of {audit.name}",
        "name": f"Audit of {audit.name}",
        "contents": (),
        "audit": audit,
        "plot": both(partial(class_plot, audit.classes, audit.facts.listing.parts)),
        "parts": audit.facts.listing.parts,
        "pictures_of": partial(_pictures, audit),
        "lines_of": _lines,
    }
    return rendered("audit.html", ("page.js",), content, package=__package__, further_style="audit.css")


def short(audit: Audit) -> str:
    """The findings as a table, for a notebook."""
    rows = "".join(
        f"<tr><td>{finding.gravity}</td><td>{escape(visible(finding.title))}</td>"
        f"<td>{escape(visible(finding.meaning))}</td></tr>"
        for finding in audit.findings
    )
    head = f"<p>{escape(visible(audit.name))}: {escape(visible(audit.summary))}</p>"
    return f"{head}<table><tbody>{rows}</tbody></table>" if rows else f"{head}<p>Nothing to complain of.</p>"


def _pictures(audit: Audit, finding: Finding) -> list[tuple[Row, list[str]]]:
    """The first cases with images, and small copies of those."""
    shown = [row for row in finding.rows if row.images][:PICTURES]
    return [(row, [_small_copy(audit.facts.items[i].path) for i in row.images[:COPIES]]) for row in shown]


def _lines(finding: Finding) -> tuple[list[Row], int]:
    """The other cases, and how many are left out even so."""
    with_images = [row for row in finding.rows if row.images][:PICTURES]
    rest = [row for row in finding.rows if row not in with_images] if len(finding.rows) > len(with_images) else []
    return rest[:LINES], max(0, len(rest) - LINES)


def _small_copy(path: Path) -> str:
    """A data URI; empty where the file cannot be read any more."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's, of what was read all the same
            image = import_pillow().fromarray(read_image(path, Frame(SIDE, keep=SIDE)))
    except ValueError:
        return ""
    image.thumbnail((2 * SIDE, SIDE))
    written = io.BytesIO()
    image.save(written, "JPEG", quality=80)
    return f"data:image/jpeg;base64,{base64.b64encode(written.getvalue()).decode()}"
