"""The reality check, both halves in one go: tune every method on held-out images, then train what was chosen.

    python benchmarks/reality_check.py studies/full/reality_check_search_cifar100.toml --data DIR --out OUT

The search is `equipoise tune` of that file: every method, the baseline included, has the same trials, and there is no
test set. What it chose is trained on all of train, for --epochs epochs, with the study's seeds, and only then is the
test set opened. OUT has trials.csv, the study of what was chosen (for studies/full, under the name of the search
without "search_") and records.jsonl, for `equipoise records`. The same command goes on where it was stopped, as long
as the folder --work is there. With --beside, what studies of papers.py lack on the same images is trained in the same
packs.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

from papers import ROOT, Step, Wanted, recorded_runs, train_and_keep
from rich.console import Console

from equipoise.core.files import write_whole
from equipoise.store import Store
from equipoise.study import How, OnTerminal, Study, bound, print_outcome, tune_study
from equipoise.study.tune.outcome import Outcome, tuned_study
from equipoise.study.tune.space import placed
from equipoise.study.tune.write import chosen_toml, trials_csv


def second_half(outcome: Outcome, epochs: int) -> Study:
    """The chosen recipes, trained for so many epochs on all of train, judged by accuracy on the test set."""
    tuned = tuned_study(outcome)
    methods = {
        name: placed(replace(recipe, task=replace(recipe.task, valid=0.0, valid_per_class=None)), {"epochs": epochs})
        for name, recipe in tuned.methods.items()
    }
    name = outcome.study.name.replace("search_", "")
    return replace(tuned, name=name, metric="accuracy", methods=methods)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("search", type=Path, help="the study to tune")
    parser.add_argument("--data", type=Path, help="folder of the data sets; default as EQUIPOISE_DATA says")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "reality_check", help="folder of the runs")
    parser.add_argument("--epochs", type=int, default=200, help="of the trainings after the search")
    parser.add_argument("--beside", nargs="+", default=[], help="studies in studies/full, or paths")
    parser.add_argument("--seeds", type=int, help="of each of those, from 0; default as its file says")
    parser.add_argument("--leave-out", nargs="*", default=[], help="methods of those not to train now")
    parser.add_argument("--device")
    parser.add_argument("--workers", type=int)
    asked = parser.parse_args()

    if asked.data:
        os.environ["EQUIPOISE_DATA"] = str(asked.data.resolve())
    search, console = Study.from_toml(asked.search), Console()
    how = How.on(asked.device, asked.workers)
    outcome = tune_study(search, Store(asked.work / "search"), how, OnTerminal(console))
    print_outcome(outcome, console)
    study = second_half(outcome, asked.epochs)
    asked.out.mkdir(parents=True, exist_ok=True)
    write_whole(asked.out / "trials.csv", trials_csv(outcome).encode())
    head = f"The reality check, second half: what {asked.search.name} chose, trained on all of train."
    write_whole(asked.out / f"{study.name}.toml", chosen_toml(study, outcome, head).encode())
    store, records = Store(asked.work / "answer").create(), asked.out / "records.jsonl"
    study = bound(study, store)
    wanted = [Wanted(study, study), *Step(asked.beside, asked.seeds, asked.leave_out).bound(store)]
    recorded = recorded_runs(ROOT / "docs" / "results" / "records", records)
    train_and_keep(wanted, store, how, records, recorded)


if __name__ == "__main__":
    main()
