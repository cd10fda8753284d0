"""What the decorator makes of a formula and a kernel."""

import inspect

import pytest
import torch

from equipoise import native
from equipoise.losses import focal_loss
from equipoise.losses._base import reduce
from equipoise.losses._fused import in_one_call


def cube(logits, target, power=3, *, reduction="none"):
    return reduce((logits**power).sum(1), reduction)


def kernel_of_cube(z, target, reduction, power=3):
    """With a slope that is wrong on purpose, by a factor 10, to see who asks for it."""
    assert power == 3
    return cube(z, target, reduction=reduction).detach(), 30 * z.detach() ** 2 / (len(z) if reduction == "mean" else 1)


@pytest.mark.parametrize(("reduction", "share"), [("mean", 0.5), ("sum", 1.0), ("none", 1.0)])
@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_a_kernel_gives_value_and_slope_and_the_formula_what_lies_beyond(reduction, share, factor, monkeypatch):
    monkeypatch.setattr(native, "library", lambda: "there")
    logits, target = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), torch.tensor([0, 1])
    value = in_one_call(kernel_of_cube)(cube)(logits, target, reduction=reduction)
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

    loss = in_one_call(never)(cube)
    monkeypatch.setattr(native, "library", lambda: "there")
    logits, target = torch.ones(2, 2), torch.tensor([0, 1])
    assert loss(logits, target, reduction="mean") == 2
    assert loss(logits.double().requires_grad_(), target, reduction="mean") == 2
    with torch.no_grad():
        assert loss(logits.requires_grad_(), target, reduction="mean") == 2
    monkeypatch.setattr(native, "library", lambda: None)
    assert loss(logits, target, reduction="mean") == 2


def test_a_number_of_classes_that_is_learnt_has_a_gradient():
    @in_one_call(None, scale="factors")
    def scaled(logits, target, factors, *, reduction="none"):
        return reduce((logits * factors).sum(1), reduction)

    factors, logits = torch.ones(2, requires_grad=True), torch.ones(1, 2, requires_grad=True)
    scaled(logits, torch.tensor([0]), factors, reduction="sum").backward()
    assert factors.grad.tolist() == [1, 1]


@pytest.mark.parametrize("given", [((), {}), ((3,), {}), ((), {"power": 3})])
def test_options_come_from_the_call_or_from_the_defaults(given, monkeypatch):
    monkeypatch.setattr(native, "library", lambda: "there")
    told = []

    def kernel(z, target, reduction, power):
        told.append(power)
        return kernel_of_cube(z, target, reduction)

    in_one_call(kernel, power="power")(cube)(
        torch.ones(2, 2, requires_grad=True), torch.tensor([0, 1]), *given[0], **given[1]
    )
    assert told == [3]


def test_the_formula_sees_full_precision_whole_labels_and_numbers_of_the_logits_type():
    seen = []

    @in_one_call(None, shift="shift")
    def look(logits, target, shift, *, reduction="none"):
        seen.extend((logits.dtype, target.dtype, shift.dtype))
        return logits.sum(1)

    look(torch.ones(2, 2, dtype=torch.bfloat16), torch.zeros(2, dtype=torch.uint8), torch.tensor([1, 2]))
    assert seen == [torch.float32, torch.int64, torch.float32]


def test_what_is_drawn_for_the_kernel_is_what_the_formula_sees_later(monkeypatch):
    monkeypatch.setattr(native, "library", lambda: "there")
    used = []

    def formula(logits, target, *, factor=None, reduction="none"):
        used.append(factor)
        return factor * logits.sum(1)

    def kernel(z, target, reduction, factor):
        used.append(factor)
        return factor * z.sum(1), factor * torch.ones_like(z)

    loss = in_one_call(kernel, factor="factor", draw=lambda target, parameters: {"factor": 7.0})(formula)
    logits = torch.ones(2, 2, requires_grad=True)
    torch.autograd.grad(loss(logits, torch.tensor([0, 1])).sum(), logits, create_graph=True)
    assert used == [7.0, 7.0]


def test_it_looks_like_the_formula():
    assert list(inspect.signature(focal_loss).parameters) == ["logits", "target", "gamma", "reduction"]
    assert focal_loss.__doc__.startswith("Focal loss of each sample")


@pytest.mark.parametrize(
    ("given", "named", "message"),
    [
        ((2.0, 3.0), {}, "too many positional arguments"),
        ((2.0,), {"gamma": 1.0}, "multiple values for argument 'gamma'"),
        ((), {"gama": 1.0}, "unexpected keyword argument 'gama'"),
    ],
)
def test_a_wrong_call_is_told_as_python_tells_it(given, named, message):
    with pytest.raises(TypeError, match=message):
        focal_loss(torch.ones(2, 2), torch.tensor([0, 1]), *given, **named)


@pytest.mark.parametrize("named", [{}, {"shifts": torch.ones(2)}])
def test_a_missing_argument_is_named(named):
    @in_one_call(None, shift="shift")
    def shifted(logits, target, *, shift, reduction="none"):
        raise AssertionError

    with pytest.raises(TypeError, match="missing a required .*'shift'"):
        shifted(torch.ones(2, 2), torch.tensor([0, 1]), **named)
