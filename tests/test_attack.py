"""A short version of `benchmarks/attack.py`: whatever goes wrong, there is no traceback and no silent other number.

Kills have their own tests, `tests/study/test_kill.py`.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "attack.py"
ATTACKS = ("toml", "parameters", "pickles", "flips", "images", "stores")


@pytest.fixture(scope="module")
def tallies(tmp_path_factory):
    out = tmp_path_factory.mktemp("attacked")
    command = [sys.executable, SCRIPT, *ATTACKS, "--count", "20", "--minutes", "30", "--jobs", "2", "--out", out]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1800)
    assert done.returncode in (0, 1), done.stdout
    return {tally["name"]: tally for tally in json.loads((out / "attack.json").read_text())["attacks"]}


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_breaks(name, tallies):
    tally = tallies[name]
    assert tally["cases"] == 20
    assert not tally["wrong"], json.dumps(tally["offending"], indent=1)
