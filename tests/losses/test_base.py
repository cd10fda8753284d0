import pytest
import torch

import equipoise.losses
from equipoise.losses import CrossEntropyLoss, FocalLoss, Loss


class Constant(Loss):
    """The least a subclass writes."""

    def per_sample(self, logits, target):
        return logits.sum(1)


@pytest.mark.parametrize(("reduction", "expected"), [("mean", 3.0), ("sum", 6.0), ("none", [2.0, 4.0])])
def test_a_subclass_needs_per_sample_only(reduction, expected):
    value = Constant(reduction)(torch.tensor([[1.0, 1.0], [2.0, 2.0]]), torch.tensor([0, 1]))
    assert value.tolist() == expected


def test_an_unknown_reduction_is_refused():
    with pytest.raises(ValueError, match="reduction must be one of 'mean', 'sum', 'none', not 'avg'"):
        CrossEntropyLoss(reduction="avg")


def test_a_second_derivative_of_a_closed_form_is_an_error_not_a_wrong_number():
    logits = torch.randn(2, 3, requires_grad=True)
    value = FocalLoss()(logits, torch.tensor([0, 1]))
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.grad(value, logits, create_graph=True)


def test_all_names_what_is_there():
    names = equipoise.losses.__all__
    assert names == sorted(names)
    public = {name for name in vars(equipoise.losses) if not name.startswith("_")}
    modules = {name for name in public if type(getattr(equipoise.losses, name)).__name__ == "module"}
    assert public - modules <= set(names)
    assert set(names) <= public
