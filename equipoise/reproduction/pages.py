"""The pages of docs/results/tables and the index in docs/results/README.md, made of records and published numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from ..analysis import MethodResult, Verdict, compare, mean_interval, power_note, smallest_n_for_claim
from ..core import EquipoiseError
from ..core.files import write_whole
from ..core.words import counted
from ..report.render import words
from ..report.render.words import UNKNOWN, heading, number
from .judgement import OUTSIDE, STATES, Judgement, judge, new_mean_interval, stuck_runs
from .measures import measures_page
from .picture import pictures
from .published import Paper, Point, read_elsewhere, read_papers
from .records import StudyRecords, read_records

BEGIN, END = "<!-- begin: written by `equipoise tables` -->", "<!-- end: written by `equipoise tables` -->"
RECORDED = "recorded"  # the page of studies that are no paper's
MEASURES = "measures.md"
JUDGED = "[how a number is judged](../README.md#how-a-published-number-is-judged)"
MADE = f"Written by `equipoise tables` from `docs/results/records`; {JUDGED}."


@dataclass(frozen=True)
class Results:
    """All that the pages show."""

    papers: Sequence[Paper]
    records: Mapping[str, StudyRecords]
    elsewhere: Sequence[Point] = ()

    def judged(self, paper: Paper) -> list[Judgement]:
        return [judge(cell, self.records.get(cell.study)) for cell in paper.cells]

    @property
    def of_no_paper(self) -> list[StudyRecords]:
        published = {cell.study for paper in self.papers for cell in paper.cells}
        return [study for name, study in self.records.items() if name not in published]

    def pages(self) -> dict[str, str]:
        """File name -> text."""
        pages = {f"{paper.file}.md": paper_page(paper, self) for paper in self.papers}
        pages |= {f"{RECORDED}.md": recorded_page(self.of_no_paper), MEASURES: measures_page(self.records.values())}
        return {**pages, **self.pictures()}

    def pictures(self) -> dict[str, str]:
        """File name -> drawing."""
        return pictures(self.papers, self.records, self.elsewhere)


def write_tables(results: Path, published: Path) -> list[Path]:
    """Write `results`/tables from `results`/records, and the index into `results`/README.md; gives the files."""
    found = Results(read_papers(published), read_records(results / "records"), read_elsewhere(published))
    folder, readme = results / "tables", results / "README.md"
    folder.mkdir(exist_ok=True)
    texts = {folder / name: text for name, text in found.pages().items()}
    texts[readme] = with_block(readme.read_text(), index_block(found), readme)
    for path, text in texts.items():
        write_whole(path, text.encode())
    return list(texts)


def with_block(text: str, block: str, path: Path) -> str:
    """The text with `block` between its two marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise EquipoiseError(f"{path} has no place for the index: add the lines\n{BEGIN}\n{END}")
    return f"{before}{BEGIN}\n\n{block}\n\n{END}{after}"


# -- the index ---------------------------------------------------------------------------------------------------------


def index_block(results: Results) -> str:
    """What did not reproduce, then how many cells of each paper have which state."""
    judged = {paper: results.judged(paper) for paper in results.papers}
    states = Counter(judgement.state for of_paper in judged.values() for judgement in of_paper)
    compared = states.total() - states["too few runs"] - states["not run"]
    outside = [
        f"- {paper.name}, {judgement.cell.table}, `{judgement.cell.study}`, {_sentence(judgement)}"
        for state in OUTSIDE
        for paper, of_paper in judged.items()
        for judgement in of_paper
        if judgement.state == state
    ]
    told = f"{compared} of {states.total()} published numbers have been compared with runs of ours"
    shown = [f"![Recorded accuracies beside the published ones](tables/{name})" for name in results.pictures()]
    outside_or_not = f"{told}; outside are:" if outside else f"{told}; none is outside."
    parts = [*shown, outside_or_not, "\n".join(outside), _counts(judged)]
    return "\n\n".join(part for part in parts if part)


def _counts(judged: Mapping[Paper, Sequence[Judgement]]) -> str:
    lines = ["| paper | cells | " + " | ".join(STATES) + " |", "|---|" + "---:|" * (len(STATES) + 1)]
    for paper, of_paper in judged.items():
        count = Counter(judgement.state for judgement in of_paper)
        cells = [str(len(of_paper)), *(str(count[state] or UNKNOWN) for state in STATES)]
        lines.append(f"| [{paper.name}](tables/{paper.file}.md) | {' | '.join(cells)} |")
    return "\n".join(lines)


def _sentence(judgement: Judgement) -> str:
    cell, ours = judgement.cell, _ours(judgement)
    other = f"; recipe differs: {cell.differs}" if cell.differs else ""
    return f"{cell.method}: published {cell.told}, here {ours} {_between(judgement)}, n = {judgement.n}{other}"


# -- a paper -----------------------------------------------------------------------------------------------------------


def paper_page(paper: Paper, results: Results) -> str:
    """Every published number with its state, table by table."""
    judged = results.judged(paper)
    count = Counter(judgement.state for judgement in judged)
    states = ", ".join(f"{count[state]} {state}" for state in STATES if count[state])
    parts = [f"# {paper.name}: published numbers and ours", f"{paper.reference}. {MADE}"]
    parts.append(f"{counted(len(judged), 'number')}: {states}.")
    for table, of_table in groupby(judged, key=lambda judgement: judgement.cell.table):
        parts += [f"## {table[:1].upper()}{table[1:]}", *_table(list(of_table), results.records)]
    return "\n\n".join(parts) + "\n"


def _table(judged: list[Judgement], records: Mapping[str, StudyRecords]) -> list[str]:
    """A section for each study that has runs, then a list of the others."""
    parts, not_run = [], []
    for study in dict.fromkeys(judgement.cell.study for judgement in judged):
        own = [judgement for judgement in judged if judgement.cell.study == study]
        if study in records:
            parts += [f"### `{study}`", *_study(own, records[study])]
        else:
            numbers = "; ".join(f"{j.cell.method}: {j.cell.told}" for j in own)
            not_run.append(f"- `{study}`. {numbers}")
    return parts + (["Not run, with the published numbers:", "\n".join(not_run)] if not_run else [])


def _study(judged: list[Judgement], records: StudyRecords) -> list[str]:
    lines = ["| method | published | here | n | a published mean would lie in | |", "|---|---:|---:|---:|---:|---|"]
    for j in judged:
        lines.append(
            f"| {j.cell.method} | {j.cell.told} | {_ours(j)} | {j.n or UNKNOWN} | {_between(j)} | *{j.state}* |"
        )
    about = [*_remarks("Recipe differs", judged, "differs"), *_remarks("Unsure", judged, "unsure")]
    remarks = [*_learned_nothing(records), *about]
    return [records.question, "\n".join(lines), *(["\n".join(remarks)] if remarks else []), provenance(records)]


def _learned_nothing(records: StudyRecords) -> list[str]:
    """A line for each method some of whose runs name one class for all images."""
    found = {method: stuck_runs(records, method) for method in records.methods}
    return [
        f"- Learned nothing ({method}): {stuck} of {counted(len(records.finished(method)), 'run')} named one class for "
        "all images."
        for method, stuck in found.items()
        if stuck
    ]


def _remarks(what: str, judged: Iterable[Judgement], field: str) -> list[str]:
    """A line for each remark, with the methods it is about."""
    said: dict[str, list[str]] = {}
    for judgement in judged:
        if remark := getattr(judgement.cell, field):
            said.setdefault(remark, []).append(judgement.cell.method)
    return [f"- {what} ({', '.join(methods)}): {remark}." for remark, methods in said.items()]


def _ours(judgement: Judgement) -> str:
    return number(judgement.mean, _digits(judgement), sign=judgement.cell.against is not None)


def _between(judgement: Judgement) -> str:
    signed = judgement.cell.against is not None
    return interval(judgement.low, judgement.high, _digits(judgement), signed)


def _digits(judgement: Judgement) -> int:
    return max(1, len(judgement.cell.printed.partition("±")[0].partition(".")[2]))


def interval(low: float, high: float, digits: int = 1, sign: bool = False) -> str:
    if math.isnan(low):
        return UNKNOWN
    return f"[{number(low, digits, sign)}, {number(high, digits, sign)}]"


def provenance(records: StudyRecords) -> str:
    """Last epochs, data, machine, versions and dates of the runs of a study, in a sentence."""
    done = [run for run in records.runs if not run.error]
    if not done:
        return "No run has finished."
    epochs = sorted({records.methods[run.method]["plan"]["epochs"] for run in done})
    data = sorted({run.data for run in done})
    subsets = f"data {data[0]}" if len(data) == 1 else f"{len(data)} subsets, the first with data {_first(records)}"
    devices = sorted({run.device for run in done})
    versions = sorted({f"equipoise {run.versions.get('equipoise')}, torch {run.versions.get('torch')}" for run in done})
    days = sorted({run.ended[:10] for run in done})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    failed = len(records.runs) - len(done)
    lost = f" {counted(failed, 'run')} failed." if failed else ""
    return (
        f"After the last epoch ({', '.join(map(str, epochs))}); {subsets}; {', '.join(devices)}; "
        f"{', '.join(versions)}; {when}.{lost}"
    )


def _first(records: StudyRecords) -> str:
    return min((run for run in records.runs if not run.error), key=lambda run: run.seed).data


# -- studies of no paper -----------------------------------------------------------------------------------------------


def recorded_page(studies: Iterable[StudyRecords]) -> str:
    """Studies of ours: each method's mean, whether it differs from the baseline, and where one more run would fall."""
    parts = [
        "# Recorded studies that are no paper's",
        f"{MADE} `equipoise verify STUDY/METHOD` trains one again.",
        "Δ is the mean difference to the baseline over the seeds that both have, p that of the sign-flip test after "
        "Holm's correction; what is separable at 5 % is called better or worse, on these test images. Whether all were "
        "trained long enough, which `equipoise run` tries out, is not asked here.",
    ]
    for study in studies:
        verdict = verdict_of(study)
        ranked = [method for method in verdict.methods if method.n]
        title = ["method", "here", "95 % interval", "n", f"Δ to {study.baseline}", "p", "", "one more run would lie in"]
        lines = [f"| {' | '.join(title)} |", "|---|---:|---:|---:|---:|---:|---|---:|"]
        lines += [_recorded_row(study, method) for method in ranked]
        left = study.methods.keys() - {method.name for method in ranked}
        not_run = [f"Not run: {'; '.join(name for name in study.methods if name in left)}."] if left else []
        measured = f"{study.question} {heading(study.metric)}, of test images."
        told = [*not_run, "\n".join(_learned_nothing(study)), *_too_few(verdict), provenance(study)]
        parts += [f"## `{study.name}`", measured, "\n".join(lines), *filter(None, told)]
    return "\n\n".join(parts) + "\n"


def _too_few(verdict: Verdict) -> list[str]:
    """A sentence where no difference, however large, could be called one with so few pairs."""
    pairs = [method.n_pairs for method in verdict.methods if method.n_pairs and method.name != verdict.baseline]
    if not pairs or max(pairs) >= smallest_n_for_claim(verdict.alpha, len(pairs)):
        return []
    return [power_note(max(pairs), len(pairs), verdict.alpha)]


def verdict_of(study: StudyRecords) -> Verdict:
    """The study's methods against its baseline, paired by seed."""
    scores = {method: study.scores(method, study.metric) for method in study.methods}
    seeds = sorted({seed for of_method in scores.values() for seed in of_method})
    paired = {method: [found.get(seed, math.nan) for seed in seeds] for method, found in scores.items()}
    return compare(paired, study.baseline, metric=study.metric)


def _recorded_row(study: StudyRecords, found: MethodResult) -> str:
    metric, scores = study.metric, list(study.scores(found.name, study.metric).values())
    known = math.isfinite(found.difference)
    between = f" {words.interval(found.diff_low, found.diff_high, metric, sign=True)}" if known else ""
    cells = [
        found.name,
        words.value(found.mean, metric),
        words.interval(*mean_interval(scores), metric),
        str(found.n),
        f"{words.value(found.difference, metric, sign=True)}{between}",
        words.p_value(found.p_holm),
        found.standing,
        words.interval(*new_mean_interval(scores, runs=1), metric),
    ]
    return f"| {' | '.join(cells)} |"
