"""What every registered loss must do, at several values of its parameters."""

import inspect

import pytest
import torch
import torch.nn.functional as F

import equipoise.losses
from equipoise import core
from equipoise.losses import *  # noqa: F403 - eval(repr(loss)) needs the names

COUNTS = [500, 120, 33, 7, 1]
C = len(COUNTS)

CASES = [str(core.Spec(card.name, tuple(given.items()))) for card in core.cards("loss") for given in card.examples]
each_case = pytest.mark.parametrize("case", CASES)
both_ways = pytest.mark.usefixtures("either_way")
each_card = pytest.mark.parametrize("card", core.cards("loss") + core.cards("penalty"), ids=lambda card: card.name)


def build(case, counts=COUNTS, **more):
    spec = core.Spec.parse(case)
    card = core.card(spec.name, "loss")
    facts = {"class_counts": counts} if "class_counts" in card.facts else {}
    return card.factory(**facts, **dict(spec.params), **more)


def example(n=7, dtype=torch.float64):
    return torch.randn(n, C, dtype=dtype), torch.arange(n) % C


def value_and_gradient(loss, logits, target):
    logits = logits.detach().requires_grad_()
    value = loss(logits, target)
    return value.detach(), *torch.autograd.grad(value.sum(), logits)


def extreme_logits():
    """Rows at ±1e4: all alike, one up, one down, and mixed, each for every label."""
    rows = [torch.full((C,), 1e4), torch.full((C,), -1e4), torch.zeros(C)]
    for k in range(C):
        up, down = torch.full((C,), -1e4), torch.full((C,), 1e4)
        up[k], down[k] = 1e4, -1e4
        rows += [up, down, 1e4 * F.one_hot(torch.tensor(k), C), -1e4 * F.one_hot(torch.tensor(k), C)]
    logits = torch.stack(rows)
    return logits.repeat_interleave(C, 0), torch.arange(C).repeat(len(rows))


def test_every_loss_with_parameters_is_tried_at_several_values():
    for card in core.cards("loss"):
        assert not card.parameters or len(card.examples) >= 3, card.name


@both_ways
@each_case
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_extreme_logits_have_finite_values_and_gradients(case, dtype):
    logits, target = extreme_logits()
    value, gradient = value_and_gradient(build(case, reduction="none"), logits.to(dtype), target)
    assert value.isfinite().all()
    assert gradient.isfinite().all()


@both_ways
@each_case
def test_gradcheck(case):
    logits, target = example(6)
    loss = build(case)
    assert torch.autograd.gradcheck(lambda z: loss.per_sample(z, target), logits.requires_grad_())


@both_ways
@each_case
def test_the_second_derivative(case):
    logits, target = example(6)
    loss = build(case)
    logits.requires_grad_()
    # the slope as autograd will differentiate it is the slope without that
    (with_graph,) = torch.autograd.grad(loss(logits, target), logits, create_graph=True)
    (without,) = torch.autograd.grad(loss(logits, target), logits)
    torch.testing.assert_close(with_graph, without, rtol=1e-9, atol=1e-12)
    assert torch.autograd.gradgradcheck(lambda z: loss.per_sample(z, target), logits, atol=1e-4)


@both_ways
@each_case
def test_reductions_are_those_of_per_sample(case):
    logits, target = example()
    values = build(case).per_sample(logits, target)
    assert values.shape == (len(target),)
    assert values.dtype == logits.dtype
    torch.testing.assert_close(build(case)(logits, target), values.mean())
    torch.testing.assert_close(build(case, reduction="sum")(logits, target), values.sum())
    torch.testing.assert_close(build(case, reduction="none")(logits, target), values)


@both_ways
@pytest.mark.parametrize("card", [c for c in core.cards("loss") if c.neutral], ids=lambda card: card.name)
def test_neutral_is_cross_entropy(card):
    logits, target = example()
    text = ", ".join(f"{name}={value!r}" for name, value in card.neutral.items())
    value, gradient = value_and_gradient(build(f"{card.name}({text})"), logits, target)
    expected, expected_gradient = value_and_gradient(F.cross_entropy, logits, target)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(gradient, expected_gradient)


@both_ways
@each_case
def test_reordering_the_batch_reorders_the_values(case):
    logits, target = example()
    order = torch.randperm(len(target))
    loss = build(case, reduction="none")
    value, gradient = value_and_gradient(loss, logits, target)
    moved, moved_gradient = value_and_gradient(loss, logits[order], target[order])
    torch.testing.assert_close(moved, value[order])
    torch.testing.assert_close(moved_gradient, gradient[order])


@both_ways
@each_case
def test_renaming_classes_changes_nothing(case):
    logits, target = example()
    order = torch.tensor([3, 0, 4, 1, 2])  # the new class k is the old class order[k]
    value, gradient = value_and_gradient(build(case, reduction="none"), logits, target)
    renamed = build(case, counts=torch.tensor(COUNTS)[order], reduction="none")
    new_value, new_gradient = value_and_gradient(renamed, logits[:, order], order.argsort()[target])
    torch.testing.assert_close(new_value, value)
    torch.testing.assert_close(new_gradient, gradient[:, order])


@both_ways
@each_case
def test_a_class_without_images_does_no_harm_to_others(case):
    logits, target = extreme_logits()
    logits = torch.cat([logits, torch.randn_like(logits)])
    others = target.repeat(2) != 2
    loss = build(case, counts=[500, 120, 0, 7, 1], reduction="none")
    value, gradient = value_and_gradient(loss, logits[others], target.repeat(2)[others])
    assert value.isfinite().all()
    assert gradient.isfinite().all()


@both_ways
@each_case
def test_small_batches(case):
    loss, (logits, target) = build(case, reduction="none"), example()
    values = loss(logits, target)
    for i in range(len(target)):
        torch.testing.assert_close(loss(logits[i : i + 1], target[i : i + 1]), values[i : i + 1])
    empty, gradient = value_and_gradient(loss, logits[:0], target[:0])
    assert empty.shape == (0,)
    assert gradient.shape == (0, C)
    assert value_and_gradient(build(case), logits[:0], target[:0])[1].shape == (0, C)


@both_ways
@each_case
def test_a_batch_of_one_class(case):
    value, gradient = value_and_gradient(build(case), example()[0], torch.full((7,), 3))
    assert value.isfinite()
    assert gradient.isfinite().all()
    assert gradient[:, 3].ne(0).any()  # the label's own logit is always trained


@both_ways
@each_case
def test_half_precision_is_computed_in_float32(case):
    logits, target = example(dtype=torch.bfloat16)
    value, gradient = value_and_gradient(build(case, reduction="none"), logits, target)
    assert value.dtype == torch.float32
    assert gradient.dtype == torch.bfloat16
    expected, _ = value_and_gradient(build(case, reduction="none"), logits.float(), target)
    torch.testing.assert_close(value, expected)


@both_ways
@each_case
def test_autocast_changes_nothing(case):
    logits, target = example(dtype=torch.float32)
    loss = build(case)
    expected = value_and_gradient(loss, logits, target)
    with torch.autocast("cpu", torch.bfloat16):
        found = value_and_gradient(loss, logits, target)
    assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1])


@both_ways
@each_case
def test_backward_twice_gives_the_same(case):
    logits, target = example()
    value = build(case)(logits.requires_grad_(), target)
    (first,) = torch.autograd.grad(value, logits, retain_graph=True)
    (second,) = torch.autograd.grad(value, logits)
    assert torch.equal(first, second)


@both_ways
@each_case
def test_does_not_write_into_its_arguments(case):
    logits, target = example()
    before = logits.clone(), target.clone()
    value_and_gradient(build(case), logits, target)
    assert torch.equal(logits, before[0])
    assert torch.equal(target, before[1])


@each_case
def test_link_keeps_the_order_of_the_classes(case):
    logits, _ = example()
    linked = build(case).link(logits)
    assert linked.shape == logits.shape
    assert linked.isfinite().all()
    assert torch.equal(linked.argsort(1), logits.argsort(1))


@each_case
def test_state_and_repr_round_trip(case):
    loss, (logits, target) = build(case), example()
    again = eval(repr(loss))
    assert repr(again) == repr(loss)
    assert torch.equal(again(logits, target), loss(logits, target))
    other = build(case, counts=[9, 9, 9, 9, 900])
    other.load_state_dict(loss.state_dict())
    assert torch.equal(other(logits, target), loss(logits, target))


@each_case
def test_text_round_trip(case):
    spec = core.Spec.parse(case).resolved("loss")
    assert repr(spec.build("loss", class_counts=COUNTS)) == repr(build(case))


@pytest.mark.slow
@each_case
def test_compiles_to_one_graph(case):
    torch.compiler.reset()
    loss, (logits, target) = build(case, reduction="none"), example()
    value, gradient = value_and_gradient(loss, logits, target)
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    new_value, new_gradient = value_and_gradient(compiled, logits, target)
    torch.testing.assert_close(new_value, value)
    torch.testing.assert_close(new_gradient, gradient)


@both_ways
@each_case
def test_errors_say_what_was_expected_and_what_came(case):
    loss, (logits, target) = build(case), example(4)
    name = type(loss).__name__
    for bad_logits, bad_target, message in [
        (logits[0], target, rf"{name} expects floating logits of shape \(N, C\), got torch.float64 \(5,\)"),
        (logits.long(), target, rf"{name} expects floating logits"),
        (logits, target[:, None], rf"{name} expects labels of shape \(N,\)"),
        (logits, target.double(), rf"{name} expects labels of shape \(N,\), whole numbers"),
        (logits, target[:3], rf"{name} got 4 rows of logits and 3 labels"),
        (logits, target - 1, rf"{name} got label -1"),
        (logits, target.masked_fill(target == 0, -100), rf"{name} got label -100"),  # PyTorch's own passes over it
        (logits, target + 2, rf"{name} got label 5; with 5 classes labels run from 0 to 4"),
    ]:
        with pytest.raises(ValueError, match=message):
            loss(bad_logits, bad_target)
    if loss.class_counts is not None:
        with pytest.raises(ValueError, match="4 classes but class_counts of length 5"):
            loss(logits[:, :4], target)


@each_card
def test_docstring_has_every_section_in_order(card):
    text = inspect.getdoc(card.factory)
    sections = [".. math::", "Args:", "Differs from the paper:", "Example:", "Reference:"]
    places = [text.find(section) for section in sections]
    assert -1 not in places and places == sorted(places), dict(zip(sections, places, strict=True))
    assert card.summary.endswith(".")
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
