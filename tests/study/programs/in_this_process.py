"""A stand-in for the pool of workers of a search, for tests and for programs that they start."""

from collections import deque

import torch

from equipoise.study import How
from equipoise.study.run.job import do
from equipoise.study.run.workers import Event

CPU = torch.device("cpu")


class InThisProcess:
    """Does the jobs here, one after the other; `starting` is told each before it is done."""

    stop_words = "nothing is under way"

    def __init__(self, jobs, store, how):
        self.waiting, self.store, self.stopping = deque(jobs), store, False

    def add(self, jobs):
        self.waiting.extend(jobs)

    def events(self):
        while self.waiting:
            job = self.waiting.popleft()
            self.starting(job)
            do(job, self.store, How(CPU), lambda epoch, curves: None, lambda: False)
            yield Event("done", job, 0)

    def starting(self, job):
        pass
