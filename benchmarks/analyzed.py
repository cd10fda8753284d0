"""What the methods of a study did to predictions and representations, from the runs that papers.py has trained.

    python benchmarks/papers.py --studies loss_functions_table1_cifar10 --seeds 3 --work WORK --out OUT
    python benchmarks/analyzed.py loss_functions_table1_cifar10 --seeds 3 --work WORK --out OUT --transfer digits

It is `equipoise analyze`, without the longer training by which `equipoise run` tells whether all were trained long
enough. OUT/NAME has analysis.json and analysis.md, which are small, and report.html.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from papers import ROOT, study_of

from equipoise.report import write_report
from equipoise.store import Store, StudyDocument
from equipoise.study import Asked, OnTerminal, analyze_study, best_device, bound, print_analysis

KEPT = ("analysis.json", "analysis.md", "report.html")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", help="its name in studies/full, or a path")
    parser.add_argument("--seeds", type=int, help="from 0; default as its file says")
    parser.add_argument("--data", type=Path, help="folder of the data sets; default as EQUIPOISE_DATA says")
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "papers", help="folder of the runs")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "analyzed")
    parser.add_argument("--transfer", nargs="*", default=[], help="tasks on which a linear classifier is tried")
    parser.add_argument("--images", type=int, default=10_000, help="to look at, at most, of train and of test")
    parser.add_argument("--device")
    asked = parser.parse_args()

    if asked.data:
        os.environ["EQUIPOISE_DATA"] = str(asked.data.resolve())
    store, listener = Store(asked.work), OnTerminal()
    study = bound(study_of(asked.study, asked.seeds), store)
    store.write_json(StudyDocument.FILE, study.to_dict())
    analysis = analyze_study(store, Asked(asked.images, tuple(asked.transfer)), best_device(asked.device), listener)
    print_analysis(analysis, listener.console)
    write_report(store)
    here = asked.out / study.name
    here.mkdir(parents=True, exist_ok=True)
    for name in KEPT:
        shutil.copy(store.path / name, here / name)


if __name__ == "__main__":
    main()
