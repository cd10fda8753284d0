"""What all pages have in common: one file that needs nothing else, text that is escaped, and a policy that lets only
the page's own script and style run. Templates, style and scripts are the files beside this one; a page of another
package has a template and a style of its own there.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ...core.escaping import visible
from ...core.times import duration
from ..collect import flat
from .svg import colour, marker
from .words import last_line, number, title_of

STYLE = "page.css"


def rendered(
    template: str,
    scripts: Sequence[str],
    content: dict[str, Any],
    *,
    package: str = __package__,
    further_style: str | None = None,
) -> str:
    """The page of a template; `layout.html` takes `title`, `name`, `contents` and `data` from `content`.

    `package` has the template and `further_style`.
    """
    style = _file(STYLE) + (_file(further_style, package) if further_style else "")
    script = "".join(map(_file, scripts))
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package, "."), PackageLoader(__package__, ".")]),
        autoescape=True,
        finalize=_shown_as_it_is,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"duration": duration, "last_line": last_line, "flat": flat, "title_of": title_of}
    environment.filters["percent"] = lambda share: f"{number(100 * share)}\u00a0%"
    environment.globals |= {"colour": colour, "marker": marker, "sort_key": _sort_key}
    return environment.get_template(template).render(
        {"data": "", **content},
        style=Markup(style),
        script=Markup(script),
        policy=f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "form-action 'none'",
    )


def _shown_as_it_is(value: object) -> object:
    """Text that comes from files without what an editor or a browser would obey."""
    return visible(value, lines=True) if isinstance(value, str) and not isinstance(value, Markup) else value


def _sort_key(sort: float | str) -> str:
    """Empty sorts last."""
    return "" if isinstance(sort, float) and math.isnan(sort) else str(sort)


def _file(name: str, package: str = __package__) -> str:
    return (files(package) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
