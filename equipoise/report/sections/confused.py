"""Pictures of the classes that the best method takes for one another."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from ...core import EquipoiseError
from ...core.escaping import visible
from ...store import Confused, ConfusedPair, Store
from ..collected import Collected
from ..render.words import number
from .analyzed import said
from .section import Section

NAME, TITLE = "confused", "Classes that are confused"


def confused(store: Store, results: Collected) -> Section | None:
    """Where confused.json has pictures of the runs that are shown."""
    if not store.holds(Confused):
        return None
    try:
        document = store.document(Confused)
    except EquipoiseError as error:
        return said(NAME, TITLE, error)
    finished = {method.name: [run.key for run in method.runs if run.finished] for method in results.methods}
    if not document.pairs or list(document.keys) != finished.get(document.method):
        return None
    sentence = (
        f"The pairs of classes that {document.method} mixes up most, over all its runs: test images of each class that "
        "it recognises, then those that it takes for the other class, the most often mistaken first."
    )
    titled = tuple((_title(pair), _pictures(pair)) for pair in document.pairs)
    return Section(NAME, TITLE, sentence, legend=False, titled=titled, menu="Confused", further=True)


def _title(pair: ConfusedPair) -> str:
    return f"{pair.true} taken for {pair.other}: {number(100 * pair.share)} % of the test images of {pair.true}"


def _pictures(pair: ConfusedPair) -> Markup:
    rows = (
        (pair.true, pair.of_true),
        (pair.other, pair.of_other),
        (f"{pair.true}, taken for {pair.other}", pair.mistaken),
    )
    return Markup('<div class="photos">{}</div>').format(Markup().join(_row(*row) for row in rows if row[1]))


def _row(words: str, pictures: Iterable[str]) -> Markup:
    shown = Markup().join(
        Markup('<img src="data:image/jpeg;base64,{}" alt="{}">').format(picture, visible(words)) for picture in pictures
    )
    return Markup("<div><div>{}</div><span>{}</span></div>").format(shown, visible(words))
