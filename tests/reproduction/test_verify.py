"""A number is trained again: what is said of the new runs, and one real cell on digits."""

from pathlib import Path

import pytest
import torch

from equipoise.core import EquipoiseError
from equipoise.reproduction import Cell, Judgement, Places, Verification, read_records, verify
from equipoise.store import Store
from equipoise.study import How, Listener

ROOT = Path(__file__).parents[2]
RECORDED = (95.0, 96.0, 97.0)  # a mean of two more: 96 ± 4.303 · sqrt(1/3 + 1/2) = 3.928


@pytest.mark.parametrize(("scores", "word"), [((92.2, 92.2), "inside"), ((92.0, 92.0), "outside")])
def test_new_runs_are_held_against_the_recorded_ones(scores, word):
    found = Verification("demo/plain", scores, RECORDED)
    assert found.holds == (word == "inside")
    assert found.sentences() == [
        f"demo/plain: {scores[0]:.2f}, the mean of 2 new runs.",
        f"Recorded, n = 3: such a mean falls into [92.07, 99.93] in 95 % of cases. This one is {word}.",
    ]


@pytest.mark.parametrize(("state", "holds"), [("recipe differs, outside", False), ("too few runs", True)])
def test_the_published_number_counts_too(state, holds):
    cell = Cell("table 2", "study", "plain", "error", "29.64", "")
    found = Verification("study/plain", (70.0,), published=(Judgement(cell, state, 1, 70.0),))
    assert found.holds == holds
    assert found.sentences()[-1].startswith("Published, table 2: 70.36 (error 29.64). Here 70.00, n = 1")


def places(records):
    return Places(records, (), ROOT / "studies" / "full")


@pytest.mark.parametrize(
    ("name", "message"),
    [("deno/plain", "'deno' is neither recorded nor a study"), ("demo/plane", "Did you mean 'plain'")],
)
def test_names_that_are_not_there_are_refused(name, message, tmp_path):
    records = read_records(ROOT / "docs" / "results" / "records")
    with pytest.raises(EquipoiseError, match=message):
        verify(name, places(records), Store(tmp_path), How(torch.device("cpu")), Listener())


def test_a_recorded_cell_on_digits_comes_out_again(tmp_path):
    """Real: the demo's plain training with a seed that no record has, about four seconds."""
    records = read_records(ROOT / "docs" / "results" / "records")
    found = verify("demo/plain", places(records), Store(tmp_path / "store"), How(torch.device("cpu")), Listener(), 1)
    assert len(found.recorded) == 8 and found.holds, found.sentences()
