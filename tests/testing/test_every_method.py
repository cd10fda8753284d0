"""Every registered method passes the checks of `equipoise.testing`; those of losses run in `tests/losses`."""

import pytest

from equipoise.core import METHOD_KINDS, cards
from equipoise.testing import augments, heads, methods, mixes, norms, samplers, weightings
from equipoise.testing._cases import Case, cases_of, run

BY_KIND = {
    "augment": augments,
    "head": heads,
    "mix": mixes,
    "norm": norms,
    "sampler": samplers,
    "weighting": weightings,
}
OF_KINDS = [
    pytest.param(check, case, id=f"{case.spec}-{check.__name__}")
    for kind, module in BY_KIND.items()
    for card in cards(kind)
    for case in cases_of(card, kind)
    for check in module.CHECKS
]
OF_ALL = [
    pytest.param(check, cases_of(card, card.kind)[0], id=f"{card.kind}.{card.name}-{check.__name__}")
    for card in cards()
    for check in methods.CHECKS
    # networks, data sets and schedules explain themselves in other ways
    if card.kind in METHOD_KINDS or check is not methods.its_docstring_says_what_it_must
]


@pytest.mark.parametrize(("check", "case"), OF_KINDS)
def test_every_method_does_what_its_kind_does(check, case: Case):
    run([check], [case])


@pytest.mark.parametrize(("check", "case"), OF_ALL)
def test_every_method_does_what_all_do(check, case: Case):
    run([check], [case])


def test_every_kind_with_checks_is_tested():
    assert set(BY_KIND) | {"loss"} == set(methods.BY_KIND)
