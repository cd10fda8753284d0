import pytest
import torch

import equipoise.losses
from equipoise import native
from equipoise.losses import CrossEntropyLoss, Loss
from equipoise.losses._base import in_one_call, reduce


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


def cube(z, target, reduction):
    return reduce((z**3).sum(1), reduction)


def kernel_of_cube(z, target, reduction):
    """With a slope that is wrong on purpose, by a factor 10, to see who asks for it."""
    return cube(z, target, reduction).detach(), 30 * z.detach() ** 2 / (len(z) if reduction == "mean" else 1)


@pytest.mark.parametrize(("reduction", "share"), [("mean", 0.5), ("sum", 1.0), ("none", 1.0)])
@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_a_kernel_gives_value_and_slope_and_the_formula_what_lies_beyond(reduction, share, factor, monkeypatch):
    monkeypatch.setattr(native, "library", lambda: "there")
    logits, target = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), torch.tensor([0, 1])
    value = in_one_call(logits, target, reduction, cube, kernel_of_cube)
    assert torch.equal(value, reduce(torch.tensor([9.0, 91.0]), reduction))
    (slope,) = torch.autograd.grad(factor * value.sum(), logits, retain_graph=True)
    torch.testing.assert_close(slope, factor * share * 30 * logits.detach() ** 2)
    (slope,) = torch.autograd.grad(factor * value.sum(), logits, create_graph=True)
    torch.testing.assert_close(slope.detach(), factor * share * 3 * logits.detach() ** 2)
    (second,) = torch.autograd.grad(slope.sum(), logits)
    torch.testing.assert_close(second, factor * share * 6 * logits.detach())


def test_the_formula_is_used_where_a_kernel_does_not_suit(monkeypatch):
    def never(z, target, reduction):
        raise AssertionError

    monkeypatch.setattr(native, "library", lambda: "there")
    logits, target = torch.ones(2, 2), torch.tensor([0, 1])
    assert in_one_call(logits, target, "mean", cube, never) == 2
    assert in_one_call(logits.double().requires_grad_(), target, "mean", cube, never) == 2
    with torch.no_grad():
        assert in_one_call(logits.requires_grad_(), target, "mean", cube, never) == 2
    monkeypatch.setattr(native, "library", lambda: None)
    assert in_one_call(logits, target, "mean", cube, never) == 2


def test_a_number_of_classes_that_is_learnt_has_a_gradient():
    def scaled(z, target, reduction):
        return reduce((z * scale).sum(1), reduction)

    scale, logits = torch.ones(2, requires_grad=True), torch.ones(1, 2, requires_grad=True)
    in_one_call(logits, torch.tensor([0]), "sum", scaled, None, scale=scale).backward()
    assert scale.grad.tolist() == [1, 1]


class Counting(Loss):
    """Counts how often it is asked what it derives from its counts."""

    asked = 0

    def derived(self, counts):
        self.asked += 1
        return 2 * counts

    def ready_for(self, logits):
        return self.ready(logits.dtype, logits.device)


def test_what_is_derived_from_the_counts_is_derived_once_and_anew_when_they_change():
    loss, logits = Counting(class_counts=[1, 2]), torch.zeros(1, 2)
    assert loss.ready_for(logits).tolist() == [2, 4] and loss.ready_for(logits).dtype == torch.float32
    assert loss.asked == 1
    loss.half()
    assert loss.ready_for(logits).tolist() == [2, 4]
    assert loss.ready_for(logits.double()).dtype == torch.float64
    asked = loss.asked
    loss.load_state_dict(Counting(class_counts=[3, 4]).state_dict())
    assert loss.ready_for(logits.double()).tolist() == [6, 8]
    loss.class_counts[0] = 5
    assert loss.ready_for(logits.double()).tolist() == [10, 8]
    for counts in ([1, 1], [1, 2]):
        loss.class_counts = torch.tensor(counts)
        assert loss.ready_for(logits.double()).tolist() == [2 * n for n in counts]
    assert loss.asked == asked + 4
    assert loss.ready_for(logits.to("meta").double()).is_meta


def test_an_error_that_is_not_the_labels_passes_unchanged():
    class Broken(Loss):
        def per_sample(self, logits, target):
            raise RuntimeError("out of paper")

    with pytest.raises(RuntimeError, match="out of paper"):
        Broken()(torch.zeros(1, 2), torch.tensor([0]))


def test_all_names_what_is_there():
    names = equipoise.losses.__all__
    assert names == sorted(names)
    public = {name for name in vars(equipoise.losses) if not name.startswith("_")}
    modules = {name for name in public if type(getattr(equipoise.losses, name)).__name__ == "module"}
    assert public - modules <= set(names)
    assert set(names) <= public
