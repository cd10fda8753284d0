"""Runs a study to its end, or to Ctrl-C, and tells a listener how it goes."""

from __future__ import annotations

from dataclasses import replace

from ...analysis.statistics.sequential import Rounds
from ...core import EquipoiseError
from ...core.words import counted
from ...store import Store
from ...store.lock import at_work
from ...train import Recipe
from ..binding import bind
from ..convergence import train_for_longer
from ..plan.cost import RunTimes
from ..plan.forecast import forecast
from ..study import Study
from .child import check_guard, workers_stay
from .how import How
from .listener import Listener
from .runs import do_runs
from .shared import cache_of


def run_study(study: Study, store: Store, how: How, listener: Listener) -> Study:
    """Do every run that the store lacks; gives the study bound to its data. Raises `Interrupted` after a clean stop."""
    check_guard()
    if store.holds(Rounds) or _adds_seeds_in_rounds(store):
        raise EquipoiseError(
            f"{store.path} holds a study that adds seeds in rounds, and its claims count on that: go on with "
            "--until-decided, or choose another folder with --out"
        )
    study = bind(study, store, listener.say)
    how = replace(how, watch_classes=study.progress)
    with at_work(store.create(), study.to_dict()), workers_stay():
        times = RunTimes(store, how.device, quick=True, elsewhere=how.engine == "ray", cache=cache_of(store))
        if said := forecast(study, times, how.workers):
            listener.say(said)
        if not do_runs(study.recipes(), store, how, listener):
            runs = counted(len(study.seeds) * len(study.methods), "run")
            listener.say(f"All of the study's {runs} are in {store.path} already.")
        train_for_longer(study, store, how, listener)
    return study


def _adds_seeds_in_rounds(store: Store) -> bool:
    """Whether the study there says so, even if its plan is gone."""
    try:
        return store.study().rounds
    except EquipoiseError:  # there is none yet, or a damaged one, which is written anew
        return False


def study_of_one(recipe: Recipe, name: str) -> Study:
    """A study of one method, so that one recipe can be run, stored and reported like any study."""
    return Study(name, f"What does {name} reach?", name, "balanced_accuracy", (recipe.seed,), {name: recipe})


def usual_listener() -> Listener:
    """A notebook where this is one, else the terminal."""
    from .notebook import InNotebook, in_notebook
    from .terminal import OnTerminal

    return InNotebook() if in_notebook() else OnTerminal()
