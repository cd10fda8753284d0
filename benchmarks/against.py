"""A recorded study again, against another of its methods or by another metric, with the same test as its page.

    python benchmarks/against.py reality_check_cifar100 --baseline "Logit adjustment"
    python benchmarks/against.py reality_check_cifar100 --metric few

It reads docs/results/records and prints what docs/results/tables/recorded.md would say.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from equipoise.core import known
from equipoise.reproduction import read_records
from equipoise.reproduction.pages import recorded_page

RECORDS = Path(__file__).resolve().parents[1] / "docs" / "results" / "records"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", help="its name, as its file in docs/results/records has it")
    parser.add_argument("--baseline", help="a method of the study; default its own baseline")
    parser.add_argument("--metric", help="of the records; default the study's own")
    asked = parser.parse_args()

    recorded = read_records(RECORDS)
    study = recorded[known("study", asked.study, recorded)]
    if asked.baseline:
        study = replace(study, baseline=known("baseline", asked.baseline, study.methods))
    if asked.metric:
        study = replace(study, metric=known("metric", asked.metric, study.runs[0].metrics))
    print(recorded_page([study]))


if __name__ == "__main__":
    main()
