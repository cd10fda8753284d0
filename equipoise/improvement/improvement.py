"""`Improvement`: what came of the corrections, in words, tables and as a network."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from torch import nn

from ..analysis import METRICS
from ..core.words import counted
from .candidates import Candidate
from .images import Images
from .judged import Estimate, Score
from .outputs import Outputs

LABELS = {"accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "nll": "NLL", "ece": "ECE"}
WIDTH = 80
FEW = 5  # samples of a class, below which a bootstrap within it says little

Table = list[tuple[str, ...]]


@dataclass(frozen=True)
class Improvement:
    """A trained network, corrected if that is surely better; see `improve`.

    `network` is the corrected copy if it `helped`, else the network that was given. `chosen` is the best combination on
    the half that was chosen on, None if none was better than the network as it is; `candidates` are all that were
    tried, and `scores` has each metric on the other half, before and after. `left_out` says which corrections were
    not tried, and why. `sparse_classes` is how many classes had few samples to judge on.
    `prior` are the class shares that the scores are about, if they are not those of the data. `fitted_on` is what the
    network, with the best combination, says of the half that was chosen on.
    """

    metric: str
    network: nn.Module
    helped: bool
    chosen: Candidate | None
    candidates: tuple[Candidate, ...]
    scores: dict[str, Score]
    left_out: tuple[str, ...]
    class_names: tuple[str, ...]
    prior: tuple[float, ...] | None
    prior_is_estimated: bool
    sizes: tuple[int, int]
    sparse_classes: int
    seed: int
    head: str | None
    images: Images | None
    fitted_on: Outputs

    @property
    def sentence(self) -> str:
        """What came of it."""
        metric, score = LABELS[self.metric], self.scores[self.metric]
        if self.chosen is None:
            return f"Nothing helped: on the half to choose on, no correction had a better {metric}."
        unit, points = (" %", " points") if METRICS[self.metric].unit == "percent" else ("", "")
        before, after = (_number(self.metric, part.value) + unit for part in (score.before, score.after))
        steps = _and([str(step) for step in self.chosen.steps])
        change = f"from {before} to {after}, by {_signed(self.metric, score.difference)}{points}"
        if self.helped:
            return f"{steps[0].upper()}{steps[1:]} improved the {metric} {change}."
        why = "is worse for sure" if score.is_worse else "cannot be told from none: its interval contains 0"
        return (
            f"Nothing helped: {steps} had the best {metric} on the half to choose on, but the change on the other "
            f"half, {change}, {why}."
        )

    @property
    def notes(self) -> list[str]:
        """What else there is to know."""
        chosen, judged = (counted(size, "sample") for size in self.sizes)
        notes = [f"Chosen on {chosen}, judged on {judged}; intervals are 95 %, by a paired bootstrap."]
        if self.prior is not None:
            shares = "estimated from the data without labels" if self.prior_is_estimated else "given"
            notes.append(f"Accuracy, NLL and ECE are those to expect under the class shares that were {shares}.")
        if self.sparse_classes:
            have = "has" if self.sparse_classes == 1 else "have"
            notes.append(
                f"{counted(self.sparse_classes, 'class', 'classes')} {have} fewer than {FEW} samples in the half that "
                "was judged on: the intervals are too narrow, and more data would say more."
            )
        return [*notes, *self.left_out]

    def score_table(self) -> Table:
        """Each metric on the half that was judged on."""
        rows: Table = [("", "before", "after", "difference")]
        for name, score in self.scores.items():
            unit = " %" if METRICS[name].unit == "percent" else ""
            cells = [_interval(name, estimate) for estimate in (score.before, score.after)]
            rows.append((LABELS[name] + unit, *cells, _signed(name, score.difference)))
        return rows

    def candidate_table(self) -> Table:
        """Each combination on the half that was chosen on."""
        columns = ("nll", "accuracy") if self.metric == "nll" else (self.metric, "nll")
        rows: Table = [("", *(LABELS[name] for name in columns))]
        for candidate in self.candidates:
            mark = "* " if candidate is self.chosen else "  "
            rows.append((mark + candidate.name, *(_number(name, candidate.scores[name]) for name in columns)))
        return rows

    def __str__(self) -> str:
        """The sentence, the tables and the notes, in at most 80 columns."""
        judged, tried = lined_up(self.score_table()), lined_up(self.candidate_table())
        notes = "\n".join(textwrap.fill(note, WIDTH) for note in self.notes)
        parts = [f"On the half that was judged on:\n{judged}", f"On the half to choose on (* chosen):\n{tried}", notes]
        return "\n\n".join([textwrap.fill(self.sentence, WIDTH), *parts])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        tables = _html(self.score_table()) + _html(self.candidate_table())
        return f"<p>{escape(self.sentence)}</p>{tables}{notes}"

    def save(self, folder: Path | str) -> Path:
        """Write improve.json, and if it helped the weights and a script that uses them; gives the folder."""
        from .write import write_improvement

        return write_improvement(self, Path(folder))

    def plain(self) -> dict[str, Any]:
        """All numbers as plain data."""
        chosen = self.chosen
        return {
            "sentence": self.sentence,
            "helped": self.helped,
            "metric": self.metric,
            "steps": [] if chosen is None else [vars(step) for step in chosen.steps],
            "notes": self.notes,
            "class_names": self.class_names,
            "prior": self.prior,
            "seed": self.seed,
            "samples": {"chosen_on": self.sizes[0], "judged_on": self.sizes[1]},
            "scores": {
                name: {part: vars(getattr(score, part)) for part in ("before", "after", "difference")}
                for name, score in self.scores.items()
            },
            "candidates": [{"name": c.name, "steps": [vars(s) for s in c.steps], **c.scores} for c in self.candidates],
            "images": None if self.images is None else vars(self.images),
        }


def lined_up(table: Table) -> str:
    """A table as text: the first column to the left, the others to the right, two spaces apart if there is room."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= WIDTH else 1
    lines = []
    for first, *others in table:
        cells = [first.ljust(widths[0]), *(c.rjust(w) for c, w in zip(others, widths[1:], strict=True))]
        lines.append((" " * gap).join(cells).rstrip())
    return "\n".join(lines)


def _html(table: Table) -> str:
    head, *body = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in table]
    rows = "".join(f"<tr>{row}</tr>" for row in body)
    return f"<table><thead><tr>{head.replace('td>', 'th>')}</tr></thead><tbody>{rows}</tbody></table>"


def _and(parts: list[str]) -> str:
    """
    >>> _and(["a", "b", "c"]), _and(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _number(metric: str, value: float) -> str:
    """
    >>> _number("accuracy", 0.9234), _number("accuracy", 1.0), _number("nll", 0.35)
    ('92.3', '100', '0.35')
    """
    if METRICS[metric].unit == "percent":
        return f"{100 * value:.1f}".replace("100.0", "100")
    return f"{value:.{2 if value < 10 else 1}f}"


def _interval(metric: str, estimate: Estimate) -> str:
    value, low, high = (_number(metric, x) for x in (estimate.value, estimate.low, estimate.high))
    return f"{value} [{low}, {high}]"


def _signed(metric: str, estimate: Estimate) -> str:
    def sign(value: float) -> str:
        text = _number(metric, abs(value))
        return text if not float(text) else ("−" if value < 0 else "+") + text

    return f"{sign(estimate.value)} [{sign(estimate.low)}, {sign(estimate.high)}]"
