"""A shortlist fits the data, and every method on it can be trained."""

import pytest

from equipoise.study import Study
from equipoise.study.shortlist import beta_for, shortlist


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("counts", [[50, 50], [60, 30], [5000, 10]])
def test_every_candidate_is_a_recipe(counts, frozen):
    candidates = shortlist(counts, frozen)
    methods = {candidate.name: dict(candidate.options) for candidate in candidates}
    study = Study.from_dict(
        {"baseline": "plain", "task": {"name": "digits"}, "base": {"model": "cnn_small"}, "methods": methods}
    )
    assert list(study.methods) == [candidate.name for candidate in candidates] and candidates[0].name == "plain"
    assert len({recipe.key for recipe in study.methods.values()}) == len(candidates)
    assert all(candidate.why for candidate in candidates)


def test_steeper_imbalance_adds_methods():
    even, uneven, steep = (shortlist(counts, frozen=False) for counts in ([50, 50], [60, 30], [5000, 10]))
    assert not any("weighting" in candidate.options or "sampler" in candidate.options for candidate in even)
    assert {candidate.name for candidate in uneven} < {candidate.name for candidate in steep}


@pytest.mark.parametrize(("counts", "frozen"), [([5000, 10], False), ([5000, 10], True), ([60, 30], True)])
def test_what_is_most_promising_comes_before_what_else_is_trained(counts, frozen):
    names = [candidate.name for candidate in shortlist(counts, frozen)]
    assert names[:3] == ["plain", "logit adjustment", "balanced cosine softmax"]


def test_heads_have_what_is_best_for_heads():
    even, steep = (
        [candidate.name for candidate in shortlist(counts, frozen=True)] for counts in ([50, 50], [5000, 10])
    )
    assert even == ["plain", "cosine softmax"], "label smoothing makes heads worse"
    assert steep[3] == "LDAM-DRW" and steep[-1] == "tau-norm"


@pytest.mark.parametrize("frozen", [True, False])
def test_nothing_is_mixed(frozen):
    """No mixing can act inside a frozen network, and none helps in so short a training."""
    assert not any("mix" in candidate.options for candidate in shortlist([5000, 10], frozen))


def test_it_is_not_on_the_list_where_it_has_not_been_tried():
    for counts, frozen in (([60, 30], False), ([50, 50], True)):
        assert "balanced cosine softmax" not in [candidate.name for candidate in shortlist(counts, frozen)]


@pytest.mark.parametrize(
    ("largest", "beta"), [(1, 0.9), (10, 0.9), (100, 0.99), (999, 0.99), (1000, 0.999), (10**9, 0.9999)]
)
def test_beta(largest, beta):
    assert beta_for(largest) == beta
