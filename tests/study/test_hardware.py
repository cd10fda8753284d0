"""How many runs go side by side on a GPU, and whether they are compiled: by what is measured, which is made up here."""

import pytest
import torch

from equipoise.data import load_task
from equipoise.store import Damaged, Store
from equipoise.study.run import hardware
from equipoise.train import Recipe

RECIPE = Recipe.make({"model": "cnn_small", "epochs": 1}, {"name": "digits"}, 0)
OTHER = Recipe.make({"model": "cnn_small(width=4)", "epochs": 1}, {"name": "digits"}, 0)


@pytest.fixture
def packing(monkeypatch):
    """`packing(runs, rates, may_compile)` where a pack of some size has the rate, and each run takes so much memory."""
    task = load_task(**RECIPE.task.__dict__, seed=0)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (10**9, 10**9))
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: 0)
    monkeypatch.setattr(hardware, "SHORT_STUDY", 0.0)

    def found(runs, rates, may_compile=False, memory=1000):
        def measured(recipe, size, task, compiled):
            return rates[size, compiled], memory * size

        monkeypatch.setattr(hardware, "_measured_rate", measured)
        return hardware.packing(RECIPE, runs, task, may_compile)

    return found


PLAIN = {(1, False): 100.0, (4, False): 300.0, (8, False): 301.0}  # of 32 runs


def test_as_many_as_make_the_whole_faster(packing):
    assert packing(32, PLAIN) == (4, 300.0, False), "eight are no faster"
    assert packing(1, PLAIN) == (1, 100.0, False)


def test_packs_that_would_be_made_are_measured(packing):
    """Ten runs go together if that is faster than five and five: whether eight are as fast does not matter."""
    rates = {(1, False): 81.0, (4, False): 190.0, (5, False): 213.0, (10, False): 250.0}
    assert packing(10, rates) == (10, 250.0, False)
    assert packing(10, rates | {(10, False): 214.0}) == (5, 213.0, False)


def test_few_runs_go_in_one_pack(packing):
    """And not four and two, nor three and three."""
    rates = {(1, False): 100.0, (3, False): 300.0, (6, False): 400.0}
    assert packing(6, rates) == (6, 400.0, False)
    assert packing(3, rates | {(3, False): 101.0}) == (1, 100.0, False), "where it is faster"


def test_no_more_than_fit(packing):
    assert packing(32, PLAIN, memory=10**9).size == 1


def test_a_short_study_measures_no_more_than_the_first_pack(packing, monkeypatch):
    monkeypatch.setattr(hardware, "SHORT_STUDY", 1e9)
    assert packing(20, {(1, False): 100.0}).size == 16
    assert packing(3, {(1, False): 100.0}).size == 3


@pytest.mark.parametrize(("compiled", "kept"), [(350.0, (4, 350.0, True)), (290.0, (4, 300.0, False))])
def test_compiled_only_where_that_is_faster(packing, compiled, kept):
    rates = PLAIN | {(1, True): 200.0, (4, True): compiled, (8, True): compiled}
    assert packing(32, rates, may_compile=True) == kept


def test_what_compiling_is_worth_is_kept(tmp_path):
    store = Store(tmp_path / "store").create()
    assert hardware.compiling_pays(RECIPE, store), "as asked, where nothing was measured"
    hardware.note_compiled(RECIPE, store, False)
    hardware.note_compiled(OTHER, store, True)
    assert not hardware.compiling_pays(RECIPE, store) and hardware.compiling_pays(OTHER, store)
    store.write_json(hardware.FILE, {"compiled": {"a network": "perhaps"}})
    with pytest.raises(Damaged, match="true or false"):
        hardware.compiling_pays(RECIPE, store)
