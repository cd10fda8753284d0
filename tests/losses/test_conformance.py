"""Every registered loss does what `equipoise.testing` asks of a loss, with the kernels and without them."""

import inspect

import pytest

import equipoise.losses
from equipoise import core
from equipoise.testing import losses
from equipoise.testing._cases import cases_of

CASES = [case for card in core.cards("loss") for case in cases_of(card, "loss")]
SLOW = (losses.it_compiles_to_one_graph,)  # and the same with kernels as without: what is traced never reaches them
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.spec))
each_card = pytest.mark.parametrize("card", core.cards("loss") + core.cards("penalty"), ids=lambda card: card.name)


def named(check):
    return check.__name__


@pytest.mark.usefixtures("either_way")
@each_case
@pytest.mark.parametrize("check", [check for check in losses.CHECKS if check not in SLOW], ids=named)
def test_every_loss(check, case):
    check(case)


@pytest.mark.slow
@each_case
@pytest.mark.parametrize("check", SLOW, ids=named)
def test_every_loss_slowly(check, case):
    check(case)


def test_every_loss_with_parameters_is_tried_at_several_values():
    for card in core.cards("loss"):
        assert not card.parameters or len(card.examples) >= 3, card.name


@each_card
def test_docstring_has_every_section_in_order(card):
    text = inspect.getdoc(card.factory)
    sections = [".. math::", "Args:", "Differs from the paper:", "Example:", "Reference:"]
    places = [text.find(section) for section in sections]
    assert -1 not in places and places == sorted(places), dict(zip(sections, places, strict=True))
    for parameter in inspect.signature(card.factory).parameters:
        assert f"{parameter}:" in text or (parameter == "reduction" and len(card.parameters) + len(card.facts))


@each_card
def test_one_name_everywhere(card):
    module = inspect.getmodule(card.factory).__name__
    assert module == f"equipoise.losses.{card.name}"
    function = f"{card.name}_loss" if card.kind == "loss" else card.name
    words = card.factory.__name__.removesuffix("Loss").lower()
    assert words == card.name.replace("_", "")
    assert {function, card.factory.__name__} <= set(equipoise.losses.__all__)
