"""Spec, registry and facts."""

import pytest
import torch

from equipoise import core
from equipoise.core import Card, EquipoiseError, Spec, card, cards, register, signature_repr
from equipoise.losses import FocalLoss


@pytest.mark.parametrize("text", ["focal", "focal(gamma=2.0)", "steps(at=(0.5, 0.9), factor=0.1)", "mfw(site='stem')"])
def test_a_spec_survives_the_round_trip_through_text(text):
    assert str(Spec.parse(text)) == text
    assert Spec.parse(str(Spec.parse(text))) == Spec.parse(text)


@pytest.mark.parametrize(
    "text",
    ["", "focal(", "focal(2.0)", "focal(gamma=x)", "focal(gamma=1+1)", "a.b(c=1)", "focal(**{})", "(lambda: 1)()", "1",
     "focal(gamma=__import__('os'))", "focal(gamma=[f(1)])", "\0"],
)  # fmt: skip
def test_a_spec_is_literals_and_keywords_only(text):
    with pytest.raises(EquipoiseError, match="cannot read"):
        Spec.parse(text)


def test_equal_methods_have_equal_texts():
    assert Spec.parse("focal").resolved() == Spec.parse("focal(gamma=2)").resolved() == Spec.parse("focal(gamma=2.0)")


def test_unknown_names_and_parameters_suggest_the_right_one():
    with pytest.raises(EquipoiseError, match=r"no loss is named 'focl'\. Did you mean 'focal'\?"):
        Spec.parse("focl").build("loss")
    with pytest.raises(EquipoiseError, match="focal has no parameter 'gama'; it takes gamma"):
        Spec.parse("focal(gama=1.0)").build("loss")
    with pytest.raises(EquipoiseError, match="no kind of method is named 'los'. Did you mean 'loss'"):
        cards("los")


def test_a_bad_value_names_the_spec():
    with pytest.raises(EquipoiseError, match=r"focal\(gamma=-1\): gamma must be at least 0, not -1"):
        Spec.parse("focal(gamma=-1)").build("loss")


def test_a_name_is_found_only_among_its_kind():
    with pytest.raises(EquipoiseError, match="no weighting is named 'focal'"):
        Spec.parse("focal").build("weighting", class_counts=[1, 2])


def test_facts_are_given_to_those_who_name_them():
    counts = torch.tensor([5, 1])
    loss = Spec.parse("balanced_softmax").build("loss", class_counts=counts, num_classes=2, labels=None)
    assert loss.class_counts.tolist() == [5, 1]
    assert isinstance(Spec.parse("focal(gamma=1.0)").build("loss", class_counts=counts), FocalLoss)
    with pytest.raises(TypeError, match="must be told class_counts"):
        Spec.parse("balanced_softmax").build("loss")


@pytest.fixture
def clean_registry(monkeypatch):
    monkeypatch.setattr(core.registry, "_REGISTRY", dict(core.registry._REGISTRY))


def test_a_required_parameter_is_asked_for(clean_registry):
    @register("needy", kind="loss")
    def needy(margin: float):
        """Needs a margin."""

    with pytest.raises(EquipoiseError, match=r"needy needs margin; write needy\(margin=…\)"):
        Spec.parse("needy").resolved()


def test_one_name_one_method(clean_registry):
    with pytest.raises(ValueError, match="two loss entries are named 'focal'"):
        register("focal", kind="loss")(FocalLoss)
    with pytest.raises(ValueError, match="registered as 'lose'"):
        register("new", kind="lose")


def test_a_card_reads_its_facts_off_the_signature():
    entry = card("ldam")
    assert isinstance(entry, Card) and entry.facts == ("class_counts",)
    assert list(entry.parameters) == ["max_margin", "scale"]
    assert entry.summary and not entry.summary.endswith(".py")


def test_repr_names_every_argument():
    assert signature_repr(FocalLoss(gamma=1.5)) == "gamma=1.5, reduction='mean'"
