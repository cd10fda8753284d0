"""A search by eight processes that share a PostgreSQL database, one of which is killed: `shared_tuning.py FOLDER URL`.

PyTorch is imported once; processes are forked. Each writes what it trained and what it came to into FOLDER.
"""

import json
import os
import signal
import sys
import time
from multiprocessing import get_context
from pathlib import Path

import psycopg  # noqa: F401  # what all need is imported before they are forked
import sqlalchemy.dialects.postgresql.psycopg  # noqa: F401
import torch
from in_this_process import CPU, InThisProcess

import equipoise.study.tune.sampled  # noqa: F401
from equipoise.data import load_task
from equipoise.store import Store
from equipoise.study import How, Listener, Study, tune_study
from equipoise.study.tune import tune as driver

PROCESSES, KILLED = 8, 3
STUDY = {
    "baseline": "plain",
    "seeds": 1,
    "task": {"name": "blobs", "n_max": 30, "valid": 0.2},
    "base": {"model": "cnn_small(width=4)", "epochs": 1},
    "methods": {"plain": {}, "weighted": {"weighting": "effective_number(beta=0.99)"}},
    "tune": {"trials": 8, "seeds": 2, "sampler": "tpe", "prune": True},
}


class Mortal(InThisProcess):
    """May be killed at its first job, which it notes."""

    mortal = False

    def starting(self, job):
        time.sleep(0.02)  # so that others have their turn
        if self.mortal:
            (self.store.path / "killed").write_text(job.training.key)
            os.kill(os.getpid(), signal.SIGKILL)


def tune(folder, url=None, *, mortal=False):
    torch.set_num_threads(1)
    driver.Workers, Mortal.mortal = Mortal, mortal
    outcome = tune_study(Study.from_dict(STUDY), Store(folder), How(CPU), Listener(), url)
    found = {m.name: [[t.recipe.key, t.score.value, t.pruned] for t in m.trials] for m in outcome.methods}
    (folder / "outcome.json").write_text(json.dumps(found))


def main(folder, url):
    load_task(**Study.from_dict(STUDY).methods["plain"].task.__dict__)  # read once for all
    fork = get_context("fork")
    started = [fork.Process(target=tune, args=(folder / "alone",))]
    for number in range(PROCESSES):
        options = {"mortal": number == KILLED}
        started.append(fork.Process(target=tune, args=(folder / str(number), url), kwargs=options))
    for process in started:
        process.start()
    for process in started:
        process.join()
    codes = [process.exitcode for process in started]
    assert codes == [-signal.SIGKILL if number == KILLED else 0 for number in (-1, *range(PROCESSES))], codes


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
