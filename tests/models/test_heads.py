"""What holds for every head of ours, beyond what `equipoise.testing` asks of any."""

import inspect

import pytest

from equipoise.core import Spec, cards

HEADS = cards("head")


def build(entry, in_features=6, num_classes=4):
    return Spec(entry.name).build("head", in_features=in_features, num_classes=num_classes)


@pytest.mark.parametrize("entry", HEADS, ids=lambda entry: entry.name)
class TestEveryHead:
    def test_repr_names_every_parameter(self, entry):
        text = repr(build(entry))
        assert all(f"{name}=" in text for name in inspect.signature(entry.factory).parameters)

    def test_docstring_sections_in_order(self, entry, check_docstring):
        check_docstring(entry)

    def test_new_weights_are_as_wide_as_the_first(self, entry):
        head = build(entry)
        before = head.weight.detach().clone()
        head.reset_parameters()
        assert head.weight.std().item() == pytest.approx(before.std().item(), rel=0.9)  # a product's varies more


def test_the_four_are_there():
    assert {"linear", "cosine", "dropout", "causal"} <= {entry.name for entry in HEADS}
