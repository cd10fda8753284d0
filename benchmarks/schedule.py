"""How evenly a study uses a GPU: what share of the wall time is below 90 % of its best rate, and where it goes.

    python benchmarks/schedule.py --runs 18 27 36 --epochs 200 --data DIR     # CIFAR-10-LT, ratio 100, ResNet-32
    python benchmarks/schedule.py --runs 18 --epochs 20 --random              # random images instead

Times are counted from the start of the process, imports included. The rate is that of all runs together between two
ends of epochs; the study is driven by the function behind `equipoise run`, without its check for convergence.
"""

from __future__ import annotations

import time

STARTED = time.monotonic()

import argparse  # noqa: E402
import os  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
from collections.abc import Iterator, Mapping  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

METHODS: dict[str, dict] = {
    "plain": {},
    "focal": {"loss": "focal(gamma=1.0)"},
    "ldam": {"loss": "ldam", "head": "cosine(tau=1.0, bias=False)"},
    "mfw": {"mix": "mfw(alpha=1.0)"},
    "balanced_softmax": {"loss": "balanced_softmax"},
    "cdt": {"loss": "cdt(gamma=0.2)"},
    "remix": {"mix": "remix"},
    "effective_number": {"weighting": "effective_number(beta=0.9999)"},
    "cutmix": {"mix": "cutmix"},
}


def write_random(folder: Path) -> None:
    """Files in the layout of CIFAR-10 that show nothing."""
    chance = np.random.default_rng(0)
    (folder / "cifar-10-batches-bin").mkdir(parents=True)
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        rows = chance.integers(0, 256, (10_000, 3073), np.uint8)
        rows[:, 0] = np.arange(10_000) % 10
        (folder / "cifar-10-batches-bin" / f"{name}.bin").write_bytes(rows.tobytes())


def one_study(runs: int, epochs: int) -> None:
    from equipoise.store import Store
    from equipoise.study import How, Listener, Study
    from equipoise.study.run.listener import Watch
    from equipoise.study.run.runs import do_runs

    marks: list[tuple[float, int]] = []  # when, and how many epochs of runs were done by then
    told: list[str] = []

    class Clock(Watch):
        def event(self, event, store) -> None:
            now = time.monotonic() - STARTED
            if event.what == "epoch":
                marks.append((now, 1 + (marks[-1][1] if marks else 0)))
            elif event.what == "begun":
                told.append(f"{now:.1f}")

    class Listening(Listener):
        @contextmanager
        def runs(self, names: Mapping[str, str], total: int, done: int) -> Iterator[Watch]:
            told.append(f"pack size known {time.monotonic() - STARTED:.1f}; runs begun")
            yield Clock()

    seeds = -(-runs // len(METHODS))
    study = Study.from_dict(
        {
            "baseline": "plain",
            "seeds": seeds,
            "task": {"name": "cifar10", "imbalance": "long_tailed", "ratio": 100, "valid": 0},
            "base": {"preset": "training: class-balanced CIFAR", "precision": "bf16", "epochs": epochs},
            "methods": METHODS,
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store").create()
        imported = time.monotonic() - STARTED
        do_runs(list(study.recipes())[:runs], store, How.on(), Listening())
        ended = time.monotonic() - STARTED
    show(runs, epochs, np.array([when for when, _ in marks]), ended, f"imported {imported:.1f}; {'; '.join(told[:1])} ")
    begun = sorted({round(float(t)) for t in told[1:]})
    print("    loads began at", ", ".join(map(str, begun)), "s")


def show(runs: int, epochs: int, ends: np.ndarray, ended: float, note: str) -> None:
    """The share of the time in which fewer epochs a second were done than 90 % of the best rate of five seconds."""
    grid = np.arange(0, ended, 0.5)
    rate = rates(ends, np.append(grid, ended))
    best = rate.max()
    images = 96 * 128
    slow = float(np.mean(rate < 0.9 * best))
    print(
        f"{runs} runs × {epochs} epochs: {ended:.1f} s in all, first epoch done at {ends[0]:.1f} s, last at "
        f"{ends[-1]:.1f} s; {runs * epochs * images / ended:,.0f} images/s over all, best {best * images:,.0f}; below "
        f"90 % of the best {100 * slow:.0f} % of the time; {note}",
        flush=True,
    )


def rates(ends: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Epochs a second between the points of `grid`, means over five seconds.

    The runs of a pack end their epochs at the same moment; these are counted as done evenly since the moment before, or
    the rate would jump by the whole pack.
    """
    moments, first = np.unique(np.round(ends, 1), return_index=True)
    done = np.append(first[1:], len(ends))
    start = moments[0] - float(np.median(np.diff(moments)))  # of the first epoch
    smooth = np.interp(grid, np.concatenate([[0.0, start], moments]), np.concatenate([[0, 0], done]))
    width = round(5 / (grid[1] - grid[0]))
    return np.convolve(np.diff(smooth) / np.diff(grid), np.ones(width) / width, mode="same")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, nargs="+", default=[18, 27, 36])
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--random", action="store_true", help="images that show nothing, written to a temporary folder")
    asked = parser.parse_args()
    if asked.data:
        os.environ["EQUIPOISE_DATA"] = str(asked.data.resolve())
    if asked.random:
        with tempfile.TemporaryDirectory() as folder:
            write_random(Path(folder))
            each(asked.runs, asked.epochs, {"EQUIPOISE_DATA": folder})
    elif len(asked.runs) > 1:
        each(asked.runs, asked.epochs, {})
    else:
        one_study(asked.runs[0], asked.epochs)


def each(runs: list[int], epochs: int, environment: dict[str, str]) -> None:
    """A process for each, as for a user who starts a study."""
    for count in runs:
        command = [sys.executable, __file__, "--runs", str(count), "--epochs", str(epochs)]
        subprocess.run(command, check=True, env={**os.environ, **environment})


if __name__ == "__main__":
    main()
