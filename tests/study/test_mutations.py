"""Mutated study files and strange parameters: a sentence each, and no traceback. The long version is in benchmarks/."""

import random
from pathlib import Path

import pytest

from ..loading import loaded

FILE = Path(__file__).parents[2] / "benchmarks" / "mutations.py"


@pytest.fixture(scope="module")
def mutations():
    return loaded(FILE)


def test_the_studies_that_are_mutated_are_good(mutations):
    assert mutations.read_study(mutations.WHOLE) is None
    assert mutations.read_study(mutations.SMALL) is None


@pytest.mark.parametrize("what", ["study", "parameters"])
def test_whatever_is_written_is_read_or_refused_in_a_few_lines(mutations, what):
    make, read = {
        "study": (mutations.mutated_study, mutations.read_study),
        "parameters": (mutations.random_parameters, mutations.read_parameters),
    }[what]
    rng, refused = random.Random(13), 0
    for _ in range(300):
        text = make(rng)
        told = read(text)  # anything but an EquipoiseError comes through
        refused += told is not None
        assert told is None or max(map(len, told.splitlines())) < 1000, told[:2000]
    assert refused > 100, "the mutations are too tame to show anything"
