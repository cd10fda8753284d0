"""A prior as users write it: by name, in order, in words, in a file."""

import pytest

from equipoise.core import EquipoiseError
from equipoise.imbalance.prior import read_prior

COUNTS = [900, 90, 10]
NAMES = ["cat", "dog", "emu"]


def test_priors_as_users_write_them(tmp_path):
    (tmp_path / "q.json").write_text('{"cat": 3, "dog": 1, "emu": 0}')
    (tmp_path / "q.csv").write_text("cat,3\ndog,1\nemu,0\n")
    given = [
        "cat=3,dog=1,emu=0",
        tmp_path / "q.json",
        str(tmp_path / "q.csv"),
        {"cat": 3, "dog": 1, "emu": 0},
        [3, 1, 0],
        "3, 1, 0",
    ]
    for prior in given:
        assert read_prior(prior, NAMES, COUNTS).tolist() == [3, 1, 0]
    assert read_prior("uniform", NAMES, COUNTS).tolist() == [1, 1, 1]
    assert read_prior("training", NAMES, COUNTS).tolist() == COUNTS
    assert read_prior(None, NAMES, COUNTS) is None


@pytest.mark.parametrize(
    ("prior", "said"),
    [
        ("cat=0.5,dog=0.5", "lacks 'emu'"),
        ("cat=1,dog=1,emu=1,fox=1", "no class 'fox'"),
        ("cat=many,dog=1,emu=1", "must be a number, not 'many'"),
        ("cat=1,dog", "has no '='"),
        ("cat=-1,dog=1,emu=1", "the prior of cat"),
        ("cat=nan,dog=1,emu=1", "the prior of cat"),
        ("cat=0,dog=0,emu=0", "every class a share of 0"),
        ("unifrom", "cannot be read as a file"),
        ([1, 1], "3 shares"),
        ("0.5,0.5", "3 shares"),
        ("1,2,3.4.5", "must be a number, not '3.4.5'"),
        ("dgo=1,cat=1,emu=1", "no class 'dgo'. Did you mean 'dog'"),
        ({"cat": "x", "dog": 1, "emu": 1}, "the prior of cat"),
    ],
)
def test_a_prior_that_cannot_be_is_told(prior, said):
    with pytest.raises(EquipoiseError, match=said):
        read_prior(prior, NAMES, COUNTS)


def test_the_prior_of_training_needs_to_be_known():
    with pytest.raises(EquipoiseError, match="how many images"):
        read_prior("training", NAMES)
