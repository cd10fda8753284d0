"""Attacks the tool with what goes wrong in the world, and counts tracebacks, crashes, hangs and silent other numbers.

    python benchmarks/attack.py kills --count 1000 --minutes 40 --jobs 14 --seed 0 --out attacked
    python benchmarks/attack.py toml parameters --count 500
    python benchmarks/attack.py all --minutes 10

Each attack ends with its count or its time, whichever comes first; the minutes are shared by the attacks asked for.
DIR/attack.json has the counts and the first offending cases; the exit code is 1 if there is any, or no case at all.
`--only NUMBER` runs one case again, here, and keeps its folder.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"  # before NumPy and PyTorch are read: children are forked, and threads do not survive that
os.environ |= {"COLUMNS": "250", "NO_COLOR": "1"}
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from attacks.pool import ENDS, Tally, ended, numbers_of, run_cases  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

# attack -> how many cases are asked of it; the cheap ones first
FULL = {
    "toml": 10_000,
    "parameters": 3_000,
    "pickles": 3_000,
    "flips": 1_000,
    "images": 8_000,
    "stores": 3_000,
    "kills": 1_000,
}


def main() -> int:
    asked = arguments()
    names = list(FULL) if "all" in asked.attacks else asked.attacks
    if asked.only is not None:
        return again(names[0], asked)
    end, tallies = time.monotonic() + 60 * asked.minutes, []
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        for place, name in enumerate(names):
            now = time.monotonic()
            tally = Tally(name, asked.count or FULL[name], asked.seed)
            attack(tally, Path(folder), asked, deadline=now + (end - now) / (len(names) - place))
            tallies.append(tally)
            write(tallies, asked)
    show(tallies)
    return int(any(tally.wrong or not tally.cases for tally in tallies))  # no case in time shows nothing


def arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attacks", nargs="+", choices=[*FULL, "all"], metavar="ATTACK", help=", ".join([*FULL, "all"]))
    parser.add_argument("--count", type=int, help="cases of each attack; by default the full number")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time; of kills: studies side by side")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("attacked"))
    parser.add_argument("--device", default="cpu", help="of the studies that are killed: cpu or cuda")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="run this case alone and show how it ends")
    asked = parser.parse_args()
    asked.out = asked.out.resolve()  # preparing an attack may change the working folder
    return asked


def attack(tally: Tally, folder: Path, asked: Any, deadline: float) -> None:
    """Prepare an attack and run its cases."""
    module = importlib.import_module(f"attacks.{tally.name}")
    if tally.name == "kills":  # its cases are processes already
        module.attack(tally, folder / "kills", asked.jobs, asked.device, deadline)
    else:
        run_cases(tally, module.prepare(folder), asked.jobs, module.LIMIT, deadline)


def again(name: str, asked: Any) -> int:
    """One case in this process, in a folder that stays."""
    module = importlib.import_module(f"attacks.{name}")
    case = module.prepare(Path(tempfile.mkdtemp(prefix="attack-")))
    folder = Path(tempfile.mkdtemp(prefix=f"attack-{name}-{asked.only}-"))
    os.chdir(folder)
    outcome = ended(case, numbers_of(name, asked.seed, asked.only), folder)
    print(f"{outcome.end}\n{outcome.note}\nits folder: {folder}")
    return int(outcome.end != "ok")


def write(tallies: list[Tally], asked: Any) -> None:
    import torch

    asked.out.mkdir(parents=True, exist_ok=True)
    found = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cores": len(os.sched_getaffinity(0)),
        "device": asked.device,
        "jobs": asked.jobs,
        "attacks": [{**asdict(tally), "cases": tally.cases, "wrong": tally.wrong} for tally in tallies],
    }
    (asked.out / "attack.json").write_text(json.dumps(found, indent=1, ensure_ascii=False))


def show(tallies: list[Tally]) -> None:
    table = Table("attack", "cases", *ENDS, "minutes", "of the good ones", box=None, pad_edge=False)
    for column in table.columns[1:-1]:
        column.justify = "right"
    for tally in tallies:
        notes = ", ".join(f"{n} {what}" for what, n in sorted(tally.notes.items()))
        ends = (str(tally.ends[end]) for end in ENDS)
        table.add_row(tally.name, f"{tally.cases} of {tally.asked}", *ends, f"{tally.seconds / 60:.1f}", notes)
    Console(highlight=False).print(table)
    for tally in tallies:
        for case in tally.offending[:3]:
            print(f"\n{tally.name} {case['case']}: {case['end']}\n{case['note'][-600:]}\nagain: {case['again']}")


if __name__ == "__main__":
    sys.exit(main())
