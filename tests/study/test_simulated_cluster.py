"""The simulation behind docs/scaling.md, on studies whose time can be worked out by hand."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def simulated():
    """A function of the setting: how the study went, with chances that a test may fix."""
    sys.path.insert(0, str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location("simulate_cluster", BENCHMARKS / "simulate_cluster.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.remove(str(BENCHMARKS))
    plain = {"long_share": 0.0, "start_up": 0.0, "warm_start": 0.0, "dispatch": 0.0, "doubles": False}

    def run(workers, loads, seconds, chance=None, **options):
        setting = module.Setting(workers, loads, seconds, **{**plain, **options})
        return module.Simulation(setting, chance or np.random.default_rng(0)).run()

    return run


class Chance:
    """Gives paces and times of death in this order, then the last for ever."""

    def __init__(self, paces=(0,), deaths=(1e9,)):
        self.paces, self.deaths = list(paces), list(deaths)

    def integers(self, _):
        return self.paces.pop(0) if len(self.paces) > 1 else self.paces[0]

    def exponential(self, _):
        return self.deaths.pop(0) if len(self.deaths) > 1 else self.deaths[0]

    def random(self, count):
        return np.arange(count) / count  # the first loads are the long ones, where there are any


def test_rounds_start_up_and_a_slow_driver(simulated):
    assert simulated(2, 5, 60.0).seconds == 180
    assert simulated(2, 5, 60.0, start_up=10.0, warm_start=1.0).seconds == 10 + 60 + 1 + 60 + 1 + 60
    assert simulated(4, 4, 60.0, dispatch=5.0).seconds == 4 * 5 + 60


def test_what_begins_first(simulated):
    """Loads of 60, 60, 120 (the last) on two workers: 180 s as they come, 120 s with the longest first."""

    class LongLast(Chance):
        def random(self, count):
            return np.array([1.0, 1.0, 0.0])

    given = {"long_share": 0.5, "chance": LongLast()}
    assert simulated(2, 3, 60.0, longest_first=False, **given).seconds == 180
    assert simulated(2, 3, 60.0, longest_first=True, **given).seconds == 120


def test_a_death_costs_what_came_after_the_checkpoint(simulated):
    """60 epochs of a second; dead after 33 s, checkpoint at 30; another worker comes after 120 s and does the rest."""
    went = simulated(1, 1, 60.0, Chance(deaths=(33.0, 1e9)), deaths_per_hour=1.0)
    assert (went.seconds, went.wasted, went.deaths) == (33 + 120 + 30, 3, 1)


def test_a_load_that_always_ends_its_worker_is_given_up(simulated):
    went = simulated(1, 1, 60.0, Chance(deaths=(1.0,)), deaths_per_hour=1.0, replacement=0.0)
    assert (went.failed, went.deaths) == (1, 20)


def test_a_straggler_is_given_to_a_second_worker(simulated):
    """The last of four loads takes 10 times as long. After 1.5 · 60 s it begins elsewhere too, from its checkpoint at
    epoch 5, and ends there 55 s later."""
    chance = Chance(paces=(0, 0, 0, 1, 0))
    went = simulated(4, 4, 60.0, chance, paces=(1.0, 10.0), doubles=True)
    assert went.doubled == 1 and went.seconds == pytest.approx(90 + 55, abs=2)
    assert simulated(4, 4, 60.0, Chance(paces=(0, 0, 0, 1)), paces=(1.0, 10.0)).seconds == 600
