"""The files of a tuned study: tuned.toml to run, trials.csv, sensitivity.json; and its table on the console."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ... import __version__
from ...analysis.statistics.priority import ALL_METRICS, WORDS
from ...core.escaping import csv_cell
from ...core.words import counted
from ...store import Store, now
from ...train import Recipe
from ..study import Study
from ..toml import toml_key, toml_pairs
from .certainty import words
from .outcome import MethodOutcome, Outcome, sensitivity, tuned_study
from .space import options_of
from .trial import Score, Trial

TUNED = "tuned.toml"


def write_outcome(outcome: Outcome, store: Store) -> None:
    """Write what there is; raises where a method has no finished trial to write a study of."""
    store.write_text("trials.csv", trials_csv(outcome))
    store.write(sensitivity(outcome))
    store.write_text(TUNED, tuned_toml(outcome))


def trials_csv(outcome: Outcome) -> str:
    """One row a trial: its state, score, epoch, seconds and the value of every dial."""
    dials = list(dict.fromkeys(dial for method in outcome.methods for dial in method.axes))
    metric = outcome.study.metric
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    head = ["method", "trial", "state", "chosen", f"valid_{metric}", "sd", "runs", "epoch", "seconds", "key"]
    table.writerow([*head, *dials])
    for method in outcome.methods:
        for trial in method.trials:
            values = (trial.point.get(dial, "") for dial in dials)
            cells = [method.name, trial.number, state(trial), trial is method.best, *_cells(trial), *values]
            table.writerow(map(csv_cell, cells))
    return file.getvalue()


def state(trial: Trial) -> str:
    """In one word: finished, pruned or failed."""
    if trial.failed:
        return "failed"
    return "pruned" if trial.pruned else "finished"


def _cells(trial: Trial) -> list[Any]:
    score = trial.score
    numbers = ("" if number is None else number for number in (score.value, score.spread))
    return [*numbers, len(score.by_seed), score.epoch or "", round(score.seconds, 2), trial.recipe.key]


def tuned_toml(outcome: Outcome) -> str:
    """The tuned study as a file that `equipoise run` takes."""
    tuning = outcome.study.tuning
    head = (
        f"The best of {counted(tuning.trials, 'trial')} of every method on validation data; "
        f"equipoise {__version__}, {now()}."
    )
    return chosen_toml(tuned_study(outcome), outcome, head)


def chosen_toml(study: Study, outcome: Outcome, head: str) -> str:
    """A study of what a search chose, as a file: what all methods share, then what sets each apart, and its score."""
    options = {name: _written(recipe) for name, recipe in study.methods.items()}
    first = next(iter(options.values()))
    base = {key: value for key, value in first.items() if all(o.get(key) == value for o in options.values())}
    task = asdict(next(iter(study.methods.values())).task)
    lines = [
        f"# {head}",
        *toml_pairs({k: getattr(study, k) for k in ("name", "question", "baseline")}),
        *toml_pairs({**_aim(study), "seeds": _seeds(study)}),
        *toml_pairs({k: True for k in ("progress", "accept_short_training") if getattr(study, k)}),
        "\n[task]",
        *toml_pairs({k: v for k, v in task.items() if v not in (None, True)}),
        "\n[tuned]",
        *toml_pairs(study.tuned),
        "\n[base]",
        *toml_pairs(base),
    ]
    for method in outcome.methods:
        assert method.best is not None
        found = told(method.best.score, study.metric)
        own = {key: value for key, value in options[method.name].items() if key not in base}
        lines += [f"\n[methods.{toml_key(method.name)}]", f"# {found} on validation data", *toml_pairs(own)]
    return "\n".join(lines) + "\n"


def _written(recipe: Recipe) -> dict[str, Any]:
    """All options of a recipe, so that no default or companion can change it; TOML has no word for None."""
    dials_off = ("weighting", "penalty", "mix", "procedure", "stage", "posthoc")
    plain = {k: "none" if v is None and k in dials_off else v for k, v in options_of(recipe).items()}
    return {k: v for k, v in plain.items() if v is not None}


def _seeds(study: Study) -> int | list[int]:
    seeds = list(study.seeds)
    return len(seeds) if seeds == list(range(len(seeds))) else seeds


def _aim(study: Study) -> dict[str, Any]:
    """What decides, as the study said it."""
    if study.priority is None:
        return {"metric": study.metric}
    words = {metric: word for word, metric in WORDS.items()}
    given = {"prior": study.priority.prior, "costs": study.priority.costs}
    table = {key: value for key, value in given.items() if value is not None}
    return {"priority": table if study.priority.costs or study.metric not in words else words[study.metric]}


def told(score: Score, metric: str) -> str:
    """A score with its spread over the seeds, in the metric's unit: "91.3 ± 1.2 %"."""
    percent = ALL_METRICS[metric].unit == "percent"
    factor, digits, unit = (100, 1, " %") if percent else (1, 3, "")
    if score.value is None:
        return "–"
    spread = "" if score.spread is None else f" ± {factor * score.spread:.{digits}f}"
    return f"{factor * score.value:.{digits}f}{spread}{unit}"


def print_outcome(outcome: Outcome, console: Console) -> None:
    """A row a method, and what to mistrust."""
    study = outcome.study
    table = Table("method", "trials", "best", "epoch", "chosen", box=None, pad_edge=False)
    for method in outcome.methods:
        best = method.best
        chosen = ", ".join(f"{dial} = {value!r}" for dial, value in best.point.items()) if best else "–"
        found, epoch = (told(best.score, study.metric), str(best.score.epoch or "–")) if best else ("–", "–")
        table.add_row(escape(method.name), str(len(method.trials)), found, epoch, escape(chosen))
    label, n = ALL_METRICS[study.metric].label, len(study.tuning.seeds)
    console.print(f"\n{label.capitalize()} on validation data, mean ± s.d. of {counted(n, 'seed')} at the best epoch:")
    console.print(table)
    console.print(escape(words(outcome)))
    for method in outcome.methods:
        for line in _doubts(method):
            console.print(f"[yellow]{escape(method.name)}[/]: {escape(line)}")


def _doubts(method: MethodOutcome) -> list[str]:
    lines = [
        f"the best {dial} is at the edge of what was tried; try values past {method.best.point[dial]!r}, or more trials"
        for dial in method.edges
        if method.best
    ]
    states = [state(trial) for trial in method.trials]
    if "failed" in states:
        lines.append(f"{states.count('failed')} of {len(states)} trials failed: {method.error}")
    if "pruned" in states:
        lines.append(f"{states.count('pruned')} of {len(states)} trials were pruned; they count")
    return lines
