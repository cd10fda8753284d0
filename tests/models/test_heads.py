"""What holds for every head."""

import copy
import inspect

import pytest
import torch

from equipoise.core import Spec, cards

HEADS = cards("head")


def build(entry, in_features=6, num_classes=4):
    return Spec(entry.name).build("head", in_features=in_features, num_classes=num_classes)


@pytest.mark.parametrize("entry", HEADS, ids=lambda entry: entry.name)
class TestEveryHead:
    def test_contract(self, entry):
        assert list(inspect.signature(entry.factory).parameters)[:2] == ["in_features", "num_classes"]
        head = build(entry)
        assert head(torch.randn(3, 6)).shape == (3, 4)
        assert head.weight.shape == (4, 6)  # what post-hoc methods and analyses read
        assert isinstance(head.no_decay, tuple) and set(head.no_decay) <= {name for name, _ in head.named_parameters()}

    def test_repr_names_every_parameter(self, entry):
        text = repr(build(entry))
        assert all(f"{name}=" in text for name in inspect.signature(entry.factory).parameters)

    def test_docstring_sections_in_order(self, entry):
        doc = inspect.getdoc(entry.factory)
        sections = (".. math::", "Args:", "Differs from the paper:", "Example:", ">>>", "Reference:")
        places = [doc.find(section) for section in sections]
        assert -1 not in places and places == sorted(places)
        args = doc[doc.find("Args:") : doc.find("Differs from the paper:")]
        assert all(f"    {name}:" in args for name in inspect.signature(entry.factory).parameters)
        assert doc.partition("\n")[0].endswith(".")

    def test_a_copy_gives_the_same(self, entry):
        head, x = build(entry).eval(), torch.randn(3, 6)
        assert torch.equal(copy.deepcopy(head)(x), head(x))

    def test_new_weights_can_be_drawn(self, entry):
        head = build(entry)
        before = head.weight.detach().clone()
        head.reset_parameters()
        assert not torch.equal(head.weight, before)
        assert head.weight.std().item() == pytest.approx(before.std().item(), rel=0.9)  # a product's varies more
        torch.manual_seed(9)
        head.reset_parameters()
        torch.manual_seed(9)
        assert torch.equal(build(entry).weight, head.weight)

    def test_learns_a_direction_for_each_class(self, entry):
        x = torch.randn(4, 8).repeat(8, 1) + 0.1 * torch.randn(32, 8)
        y = torch.arange(4).repeat(8)
        head = build(entry, in_features=8)
        optimizer = torch.optim.Adam(head.parameters(), lr=0.1)
        for _ in range(100):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(head(x), y).backward()
            optimizer.step()
        assert (head.eval()(x).argmax(1) == y).float().mean() > 0.9


def test_the_four_are_there():
    assert {"linear", "cosine", "dropout", "causal"} <= {entry.name for entry in HEADS}
