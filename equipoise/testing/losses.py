"""What every loss must do, at each of its examples."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..core import Card
from ._cases import COUNTS, C, Case, cases_of, require, require_error, run, same


def check_loss(loss: Card | str) -> None:
    """Run all `CHECKS` on a registered loss, at each of its examples."""
    run(CHECKS, cases_of(loss, "loss"))


def example(n: int = 7, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Logits and labels, the same at each call."""
    logits = torch.randn(n, C, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    return logits.to(dtype), torch.arange(n) % C


def value_and_gradient(loss: Any, logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    logits = logits.detach().requires_grad_()
    value = loss(logits, target)
    return value.detach(), torch.autograd.grad(value.sum(), logits)[0]


def extreme_logits() -> tuple[Tensor, Tensor]:
    """Rows at ±1e4: all alike, one up, one down, and mixed, each for every label."""
    rows = [torch.full((C,), 1e4), torch.full((C,), -1e4), torch.zeros(C)]
    for k in range(C):
        up, down = torch.full((C,), -1e4), torch.full((C,), 1e4)
        up[k], down[k] = 1e4, -1e4
        rows += [up, down, 1e4 * F.one_hot(torch.tensor(k), C), -1e4 * F.one_hot(torch.tensor(k), C)]
    logits = torch.stack(rows)
    return logits.repeat_interleave(C, 0), torch.arange(C).repeat(len(rows))


def extreme_logits_have_finite_values_and_gradients(case: Case) -> None:
    logits, target = extreme_logits()
    for dtype in (torch.float32, torch.bfloat16):
        value, gradient = value_and_gradient(case.build(reduction="none"), logits.to(dtype), target)
        require(value.isfinite().all(), f"{(~value.isfinite()).sum()} values at logits of ±1e4 in {dtype} are not")
        require(gradient.isfinite().all(), f"gradients at logits of ±1e4 in {dtype} are not")


def the_gradient_is_that_of_the_value(case: Case) -> None:
    logits, target = example(6)
    loss = case.build()
    torch.autograd.gradcheck(lambda z: loss.per_sample(z, target), logits.requires_grad_())


def the_second_derivative(case: Case) -> None:
    logits, target = example(6)
    loss = case.build()
    logits.requires_grad_()
    (with_graph,) = torch.autograd.grad(loss(logits, target), logits, create_graph=True)
    (without,) = torch.autograd.grad(loss(logits, target), logits)
    same(with_graph, without, "the slope that can be differentiated", rtol=1e-9, atol=1e-12)
    torch.autograd.gradgradcheck(lambda z: loss.per_sample(z, target), logits, atol=1e-4)


def float32_is_float64_rounded(case: Case) -> None:
    logits, target = example(dtype=torch.float32)
    for reduction in ("mean", "sum", "none"):
        actual = value_and_gradient(case.build(reduction=reduction), logits, target)
        exact = value_and_gradient(case.build(reduction=reduction), logits.double(), target)
        largest = max(1.0, float(exact[1].abs().max()), float(exact[0].abs().max()))
        same(actual, tuple(t.float() for t in exact), f"{reduction} in float32", rtol=1e-4, atol=1e-5 * largest)


def reductions_are_those_of_per_sample(case: Case) -> None:
    logits, target = example()
    values = case.build().per_sample(logits, target)
    require(values.shape == (len(target),), f"per_sample gave {tuple(values.shape)} for {len(target)} samples")
    require(values.dtype == logits.dtype, f"logits of {logits.dtype} gave values of {values.dtype}")
    same(case.build()(logits, target), values.mean(), "the mean")
    same(case.build(reduction="sum")(logits, target), values.sum(), "the sum")
    same(case.build(reduction="none")(logits, target), values, "what is not reduced")


def neutral_is_cross_entropy(case: Case) -> None:
    if not case.card.neutral:
        return
    logits, target = example()
    actual = value_and_gradient(case.build(**case.card.neutral), logits, target)
    same(actual, value_and_gradient(F.cross_entropy, logits, target), f"at {dict(case.card.neutral)} it")


def reordering_the_batch_reorders_the_values(case: Case) -> None:
    logits, target = example()
    order = torch.tensor([3, 0, 6, 1, 5, 2, 4])
    loss = case.build(reduction="none")
    value, gradient = value_and_gradient(loss, logits, target)
    moved, moved_gradient = value_and_gradient(loss, logits[order], target[order])
    same((moved, moved_gradient), (value[order], gradient[order]), "the reordered batch")


def renaming_classes_changes_nothing(case: Case) -> None:
    logits, target = example()
    order = torch.tensor([3, 0, 4, 1, 2])  # the new class k is the old class order[k]
    value, gradient = value_and_gradient(case.build(reduction="none"), logits, target)
    renamed = case.build(counts=torch.tensor(COUNTS)[order], reduction="none")
    actual = value_and_gradient(renamed, logits[:, order], order.argsort()[target])
    same(actual, (value, gradient[:, order]), "with classes in another order it")


def a_class_without_images_does_no_harm_to_others(case: Case) -> None:
    logits, target = extreme_logits()
    logits = torch.cat([logits, torch.randn_like(logits)])
    others = target.repeat(2) != 2
    loss = case.build(counts=[500, 120, 0, 7, 1], reduction="none")
    value, gradient = value_and_gradient(loss, logits[others], target.repeat(2)[others])
    require(value.isfinite().all() and gradient.isfinite().all(), "values or gradients of other classes are not finite")


def small_batches(case: Case) -> None:
    loss, (logits, target) = case.build(reduction="none"), example()
    values = loss(logits, target)
    for i in range(len(target)):
        same(loss(logits[i : i + 1], target[i : i + 1]), values[i : i + 1], "a sample alone")
    empty, gradient = value_and_gradient(loss, logits[:0], target[:0])
    require(empty.shape == (0,) and gradient.shape == (0, C), f"an empty batch gave {tuple(empty.shape)}")
    value_and_gradient(case.build(), logits[:0], target[:0])


def a_batch_of_one_class(case: Case) -> None:
    value, gradient = value_and_gradient(case.build(), example()[0], torch.full((7,), 3))
    require(value.isfinite() and gradient.isfinite().all(), "the value or the gradient is not finite")
    require(gradient[:, 3].ne(0).any(), "the label's own logit gets no gradient")


def half_precision_is_computed_in_float32(case: Case) -> None:
    logits, target = example(dtype=torch.bfloat16)
    value, gradient = value_and_gradient(case.build(reduction="none"), logits, target)
    require(value.dtype == torch.float32, f"logits of bfloat16 gave values of {value.dtype}")
    require(gradient.dtype == torch.bfloat16, f"logits of bfloat16 gave a gradient of {gradient.dtype}")
    same(value, value_and_gradient(case.build(reduction="none"), logits.float(), target)[0], "the value")


def autocast_changes_nothing(case: Case) -> None:
    logits, target = example(dtype=torch.float32)
    loss = case.build()
    expected = value_and_gradient(loss, logits, target)
    with torch.autocast("cpu", torch.bfloat16):
        actual = value_and_gradient(loss, logits, target)
    same(actual, expected, "under autocast it", rtol=0, atol=0)


def backward_twice_gives_the_same(case: Case) -> None:
    logits, target = example()
    value = case.build()(logits.requires_grad_(), target)
    (first,) = torch.autograd.grad(value, logits, retain_graph=True)
    (second,) = torch.autograd.grad(value, logits)
    same(second, first, "the second backward pass", rtol=0, atol=0)


def arguments_are_left_alone(case: Case) -> None:
    logits, target = example()
    before = logits.clone(), target.clone()
    value_and_gradient(case.build(), logits, target)
    require(torch.equal(logits, before[0]) and torch.equal(target, before[1]), "it wrote into its arguments")


def labels_of_any_whole_type(case: Case) -> None:
    loss, (logits, target) = case.build(reduction="none"), example()
    expected = value_and_gradient(loss, logits, target)
    for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32):
        same(value_and_gradient(loss, logits, target.to(dtype)), expected, f"with labels of {dtype} it")


def link_keeps_the_order_of_the_classes(case: Case) -> None:
    logits, _ = example()
    linked = case.build().link(logits)
    require(linked.shape == logits.shape and linked.isfinite().all(), "linked logits have another shape, or no end")
    require(torch.equal(linked.argsort(1), logits.argsort(1)), "the largest logit is no longer the largest")


def state_copy_and_repr_round_trip(case: Case) -> None:
    loss, (logits, target) = case.build(), example()
    other = case.build(counts=[9, 9, 9, 9, 900])
    other.load_state_dict(loss.state_dict())
    again = eval(repr(loss), {type(loss).__name__: type(loss)})
    require(repr(again) == repr(loss), f"{loss!r} became {again!r}")
    copies = {"its state": other, "its repr": again, "a copy": copy.deepcopy(loss)}
    copies["its pickle"] = pickle.loads(pickle.dumps(loss))
    for what, each in copies.items():
        same(each(logits, target), loss(logits, target), f"what was made of {what}", rtol=0, atol=0)


def casting_the_module_changes_no_number(case: Case) -> None:
    batch = example(dtype=torch.float32)
    expected = value_and_gradient(case.build(), *batch)
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        same(value_and_gradient(case.build().to(dtype), *batch), expected, f"as a module of {dtype} it")


def text_round_trip(case: Case) -> None:
    built = case.spec.resolved("loss").build("loss", class_counts=list(COUNTS))
    require(repr(built) == repr(case.build()), f"{case.spec} built {built!r}, not {case.build()!r}")


def errors_say_what_was_expected_and_what_came(case: Case) -> None:
    loss, (logits, target) = case.build(), example(4)
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
        require_error(message, loss, bad_logits, bad_target)
    if loss.class_counts is not None:
        require_error("4 classes but class_counts of length 5", loss, logits[:, :4], target)


def it_compiles_to_one_graph(case: Case) -> None:
    torch.compiler.reset()
    loss, (logits, target) = case.build(reduction="none"), example()
    expected = value_and_gradient(loss, logits, target)
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    same(value_and_gradient(compiled, logits, target), expected, "what was compiled")


CHECKS = (
    arguments_are_left_alone,
    extreme_logits_have_finite_values_and_gradients,
    the_gradient_is_that_of_the_value,
    the_second_derivative,
    float32_is_float64_rounded,
    reductions_are_those_of_per_sample,
    neutral_is_cross_entropy,
    reordering_the_batch_reorders_the_values,
    renaming_classes_changes_nothing,
    a_class_without_images_does_no_harm_to_others,
    small_batches,
    a_batch_of_one_class,
    half_precision_is_computed_in_float32,
    autocast_changes_nothing,
    backward_twice_gives_the_same,
    labels_of_any_whole_type,
    link_keeps_the_order_of_the_classes,
    state_copy_and_repr_round_trip,
    casting_the_module_changes_no_number,
    text_round_trip,
    errors_say_what_was_expected_and_what_came,
    it_compiles_to_one_graph,
)
