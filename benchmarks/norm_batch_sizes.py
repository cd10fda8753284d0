"""Which norm at which batch size: long-tailed digits and Fashion-MNIST, five norms, batches of 2, 8 and 128.

    python benchmarks/norm_batch_sizes.py [--seeds 3] [--out runs/norm_batch_sizes]

Prints a Markdown table; what is already in the folder is not trained again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from equipoise.core import EquipoiseError
from equipoise.report import collect
from equipoise.store import Store
from equipoise.study import How, OnTerminal, Study, run_study

NORMS = {
    "batch": "batch",
    "ghost 16": "ghost(ghost_size=16)",
    "batch_group": "batch_group(groups=8)",
    "group": "group(groups=8)",
    "batch_renorm": "batch_renorm(warmup=100, r_steps=800, d_steps=500)",
}
TASKS = {
    "digits": {"name": "digits", "imbalance": "long_tailed", "ratio": 20, "valid": 0},
    "fashion_mnist": {"name": "fashion_mnist", "imbalance": "long_tailed", "ratio": 20, "n_max": 300, "valid": 0},
}
EPOCHS = {"digits": 30, "fashion_mnist": 15}


def study(task: str, batch_size: int, seeds: int) -> Study:
    """The learning rate goes with the batch size, from 0.1 at 32, and no higher."""
    base = {
        "model": "cnn_small",
        "epochs": EPOCHS[task],
        "batch_size": batch_size,
        "lr": min(0.1, 0.1 * batch_size / 32),
    }
    methods = {name: {"norm": text} for name, text in NORMS.items()}
    plain = {"baseline": "batch", "seeds": seeds, "task": TASKS[task], "base": base, "methods": methods}
    return Study.from_dict(plain, f"{task}_{batch_size}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/norm_batch_sizes"))
    arguments = parser.parse_args()
    console, how = Console(stderr=True), How.on()
    rows = []
    for task in TASKS:
        for batch_size in (2, 8, 128):
            asked = study(task, batch_size, arguments.seeds)
            store = Store(arguments.out / asked.name)
            try:
                run_study(asked, store, how, OnTerminal(console))
            except EquipoiseError as error:
                console.print(f"{task} is left out: {error}")
                break
            found = {m.name: m.result for m in collect(store).methods}
            cells = [f"{100 * r.mean:.1f} ± {50 * (r.high - r.low):.1f}" for r in (found[name] for name in NORMS)]
            rows.append(f"| {task} | {batch_size} | {' | '.join(cells)} |")
    print(f"Test balanced accuracy in %, mean ± half of the 95 % interval over {arguments.seeds} seeds.\n")
    print(f"| task | batch | {' | '.join(NORMS)} |")
    print("|---" * (2 + len(NORMS)) + "|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
