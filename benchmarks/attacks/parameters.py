"""Random parameter sets of every method: refused in words, or the method takes a step of training with them.

A step that fails in words, as a diverged loss does, is a failed run in a study; one that fails with anything else would
leave a traceback there.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from .odd import odd_argument, registry, spec_of
from .pool import Case, Outcome

LIMIT = 60.0
PLAN = ("epochs", "batch_size", "lr", "momentum", "weight_decay", "final_decay", "warmup", "ema", "nesterov")


def prepare(folder: Path) -> Case:
    import torch

    from equipoise.core import EquipoiseError
    from equipoise.train import Recipe, Run

    task, cpu = _task(), torch.device("cpu")

    def case(rng: random.Random, folder: Path) -> Outcome:
        try:
            recipe = Recipe.make(*_options(rng))
        except EquipoiseError:
            return Outcome("ok", "refused")
        if recipe.parent is not None or recipe.plan.epochs > 1000 or "/" in recipe.model:
            return Outcome("ok", "taken")  # a run of its own is needed first, or too much time
        try:
            _step(Run(recipe, task, cpu))
        except (ValueError, ArithmeticError, MemoryError) as error:
            return Outcome("ok", f"fails in training ({type(error).__name__})")
        except RuntimeError as error:
            if "not enough memory" not in str(error) and "can't allocate" not in str(error):
                raise
            return Outcome("ok", "too large for the memory allowed here")
        return Outcome("ok", "trains")

    return case


def _task() -> Any:
    """Blobs, large enough for networks that halve images four times."""
    from dataclasses import replace

    from equipoise.data import Split, load_task

    task = load_task("blobs", imbalance="long_tailed", ratio=10, n_max=40)
    large = {
        name: Split(split.images.repeat_interleave(4, 2).repeat_interleave(4, 3), split.labels)
        for name, split in (("train", task.train), ("valid", task.valid), ("test", task.test))
    }
    return replace(task, **large)


def _step(run: Any) -> None:
    run.begin_epoch(0)
    run.feed.advance()
    run.step()


def _options(rng: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """A recipe with odd parameters of one method, now and then with an odd plan too."""
    from mutations import random_parameters

    card, options = rng.choice(registry()), {"model": "cnn_small", "epochs": 2, "batch_size": 16}
    text = spec_of(card, rng)
    if rng.random() < 0.5:
        text = random_parameters(rng)
        card = next(card for card in registry() if text.startswith(f"{card.name}("))
    task = {"name": text} if card.kind == "task" else {"name": "blobs"}
    if card.kind != "task":
        options[card.kind] = text
    if rng.random() < 0.1:
        options[rng.choice(PLAN)] = _value(odd_argument(rng))
    return options, task


def _value(text: str) -> Any:
    import ast

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
