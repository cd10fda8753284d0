"""What PyTorch expects of a loss module, beyond its numbers: every registered loss goes wherever PyTorch's own go."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from equipoise import core
from equipoise.core import full_precision

COUNTS = [500, 120, 33, 7, 1]
C = len(COUNTS)
REDUCTIONS = ["mean", "sum", "none"]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
each_loss = pytest.mark.parametrize("name", [card.name for card in core.cards("loss")])
both_ways = pytest.mark.usefixtures("either_way")
each_reduction = pytest.mark.parametrize("reduction", REDUCTIONS)
# they come from within PyTorch, where it announces what it will drop
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
]


def build(name, counts=COUNTS, **more):
    card = core.card(name, "loss")
    facts = {"class_counts": counts} if "class_counts" in card.facts else {}
    return card.factory(**facts, **card.examples[0], **more)


def example(n=7, dtype=torch.float32):
    generator = torch.Generator().manual_seed(n)
    return torch.randn(n, C, generator=generator, dtype=dtype), torch.arange(n) % C


def value_and_slope(loss, logits, target):
    """The value and the gradient, that of unlike weights where there are several values."""
    logits = logits.detach().requires_grad_()
    value = loss(logits, target)
    weights = torch.arange(1.0, 1 + value.numel(), dtype=value.dtype).view(value.shape)
    return value.detach(), *torch.autograd.grad(value, logits, weights)


def same(found, expected):
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


@both_ways
@each_loss
@each_reduction
def test_values_and_gradients_are_those_of_float64(name, reduction):
    logits, target = example()
    exact = value_and_slope(build(name, reduction=reduction), logits.double(), target)
    same(value_and_slope(build(name, reduction=reduction), logits, target), [t.float() for t in exact])


# -- a module ----------------------------------------------------------------------------------------------------------


@each_loss
def test_it_is_a_module_without_parameters(name):
    loss = build(name)
    assert isinstance(loss, nn.Module) and not list(loss.parameters())
    assert repr(loss).startswith(type(loss).__name__)
    assert nn.Sequential(loss).train(False)[0].training is False


@each_loss
@pytest.mark.parametrize("way", ["deepcopy", "pickle", "torch.save", "state"])
def test_a_copy_gives_the_same(name, way):
    loss, batch = build(name), example()
    expected = value_and_slope(loss, *batch)
    if way == "deepcopy":
        again = copy.deepcopy(loss)
    elif way == "pickle":
        again = pickle.loads(pickle.dumps(loss))
    elif way == "torch.save":
        file = io.BytesIO()
        torch.save(loss, file)
        file.seek(0)
        again = torch.load(file, weights_only=False)
    else:
        again = build(name, counts=[9, 9, 9, 9, 900])
        again.load_state_dict(loss.state_dict())
    same(value_and_slope(again, *batch), expected)


@each_loss
def test_the_state_can_be_read_without_trust(name):
    file = io.BytesIO()
    torch.save(build(name).state_dict(), file)
    file.seek(0)
    build(name).load_state_dict(torch.load(file, weights_only=True))


@both_ways
@each_loss
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_casting_the_module_changes_no_number(name, dtype):
    loss, batch = build(name), example()
    expected = value_and_slope(loss, *batch)
    same(value_and_slope(build(name).to(dtype), *batch), expected)
    same(value_and_slope(loss.to(dtype), *batch), expected)


@each_loss
def test_other_counts_for_one_call(name):
    loss, batch, other = build(name), example(), [1, 7, 33, 120, 500]
    expected = loss(*batch)
    replaced = {} if loss.class_counts is None else {"class_counts": torch.tensor(other)}
    found = torch.func.functional_call(loss, replaced, batch)
    torch.testing.assert_close(found, build(name, other)(*batch))
    torch.testing.assert_close(loss(*batch), expected)


# -- inputs ------------------------------------------------------------------------------------------------------------

LAYOUTS = {
    "transposed": lambda x: x.t().contiguous().t(),
    "every other row": lambda x: x.repeat_interleave(2, 0)[::2],
    "columns of a wider tensor": lambda x: torch.cat([x, x], 1)[:, : x.shape[1]],
    "an offset": lambda x: torch.cat([x[:1], x])[1:],
    "a sign to be turned": lambda x: torch.imag(torch.complex(x, -x).conj()),
    "odd strides": lambda x: torch.as_strided(x.repeat_interleave(3, 1), x.shape, (3 * x.shape[1], 3)),
}


@both_ways
@each_loss
@pytest.mark.parametrize("layout", LAYOUTS)
def test_however_logits_lie_in_memory(name, layout):
    loss, (logits, target) = build(name, reduction="none"), example()
    laid = LAYOUTS[layout](logits)
    torch.testing.assert_close(laid, logits)
    same(value_and_slope(loss, laid, target), value_and_slope(loss, logits, target))
    strided = torch.stack([target, target], 1)[:, 0]
    same(value_and_slope(loss, logits, strided), value_and_slope(loss, logits, target))


@both_ways
@each_loss
def test_one_row_for_all(name):
    loss, (logits, target) = build(name, reduction="none"), example()
    row = logits[:1].clone().requires_grad_()
    value = loss(row.expand(7, C), target)
    (slope,) = torch.autograd.grad(value.sum(), row)
    wide = row.detach().repeat(7, 1).requires_grad_()
    same([value.detach()], [loss(wide, target).detach()])
    same([slope], [torch.autograd.grad(loss(wide, target).sum(), wide)[0].sum(0, keepdim=True)])


@both_ways
@each_loss
@pytest.mark.parametrize("dtype", INTEGERS)
def test_labels_of_any_whole_type(name, dtype):
    loss, (logits, target) = build(name, reduction="none"), example()
    expected = value_and_slope(loss, logits, target)
    same(value_and_slope(loss, logits, target.to(dtype)), expected)
    same(value_and_slope(loss.per_sample, logits, target.to(dtype)), expected)
    same([loss(logits, target.to(dtype))], expected[:1])


@both_ways
@each_loss
@each_reduction
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_an_empty_batch_is_what_cross_entropy_makes_of_it(name, reduction, dtype):
    logits, target = torch.empty(0, C, dtype=dtype, requires_grad=True), torch.empty(0, dtype=torch.int64)
    found = build(name, reduction=reduction)(logits, target)
    expected = nn.CrossEntropyLoss(reduction=reduction)(full_precision(logits), target)
    torch.testing.assert_close(found, expected, equal_nan=True)
    found.sum().backward()
    assert logits.grad.shape == (0, C)
    with torch.no_grad():
        torch.testing.assert_close(build(name, reduction=reduction)(logits, target), expected, equal_nan=True)


@both_ways
@each_loss
def test_autocast(name):
    loss, (logits, target) = build(name), example()
    with torch.autocast("cpu", torch.bfloat16):
        found = value_and_slope(loss, logits, target)
    same(found, value_and_slope(loss, logits, target))


@both_ways
@each_loss
def test_evaluation_first_and_training_later(name):
    loss, (logits, target) = build(name), example(dtype=torch.float64)
    with torch.inference_mode():
        first = loss(logits, target).clone()
    same(value_and_slope(loss, logits, target)[:1], [first])
    with torch.inference_mode():
        made_there, batch = build(name), example(dtype=torch.float64)
        made_there(*batch)
    same(value_and_slope(made_there, logits, target), value_and_slope(loss, logits, target))


@both_ways
@each_loss
def test_recomputed_in_the_backward_pass(name):
    loss, (logits, target) = build(name), example()

    def checkpointed(z, y):
        return torch.utils.checkpoint.checkpoint(loss, z, y, use_reentrant=False)

    same(value_and_slope(checkpointed, logits, target), value_and_slope(loss, logits, target))


# -- derivatives of all kinds ------------------------------------------------------------------------------------------


@both_ways
@each_loss
def test_the_second_derivative(name):
    logits, target = example(4, torch.float64)
    loss = build(name)
    assert torch.autograd.gradgradcheck(lambda z: loss.per_sample(z, target), logits.requires_grad_(), atol=1e-4)


@both_ways
@each_loss
@each_reduction
def test_several_gradients_at_once(name, reduction):
    logits, target = example()
    value = build(name, reduction=reduction)(logits.requires_grad_(), target)
    directions = torch.randn(3, *value.shape)
    (found,) = torch.autograd.grad(value, logits, directions, retain_graph=True, is_grads_batched=True)
    one_by_one = [torch.autograd.grad(value, logits, direction, retain_graph=True)[0] for direction in directions]
    same([found], [torch.stack(one_by_one)])


@both_ways
@each_loss
@each_reduction
def test_forward_mode(name, reduction):
    loss, (logits, target) = build(name, reduction=reduction), example()
    tangent = torch.randn(logits.shape)
    jacobian = torch.autograd.functional.jacobian(lambda z: loss(z, target), logits)
    value, found = torch.func.jvp(lambda z: loss(z, target), (logits,), (tangent,))
    same([value, found], [loss(logits, target), (jacobian * tangent).sum((-2, -1))])
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(logits.clone().requires_grad_(), tangent)
        same([torch.autograd.forward_ad.unpack_dual(loss(dual, target)).tangent.detach()], [found])


@both_ways
@each_loss
def test_gradients_of_each_sample(name):
    loss, (logits, target) = build(name), example()

    def alone(z, y):
        return loss(z[None], y[None])

    found = torch.func.vmap(torch.func.grad(alone), randomness="different")(logits, target)
    rows = [value_and_slope(loss, z[None], y[None])[1][0] for z, y in zip(logits, target, strict=True)]
    same([found], [torch.stack(rows)])
    losses = torch.func.vmap(alone, in_dims=(None, 0), randomness="different")(logits[0], target)
    same([losses], [build(name, reduction="none")(logits[:1].expand(7, C), target)])


@each_loss
def test_the_hessian(name):
    loss, (logits, target) = build(name, reduction="sum"), example(3, torch.float64)
    found = torch.func.jacfwd(torch.func.jacrev(lambda z: loss(z, target)), randomness="same")(logits)
    expected = torch.autograd.functional.hessian(lambda z: loss(z, target), logits)
    same([found], [expected])


# -- tracing -----------------------------------------------------------------------------------------------------------


def runs_alike_at_other_sizes(traced, loss, sizes=(7, 3, 11)):
    for n in sizes:
        batch = example(n)
        same([traced(*batch)], [loss(*batch)])


@each_loss
@each_reduction
def test_jit_trace(name, reduction):
    loss = build(name, reduction=reduction)
    logits, target = example(4)
    for given in (logits, logits.clone().requires_grad_()):  # without its own check, which random numbers do not pass
        runs_alike_at_other_sizes(torch.jit.trace(loss, (given, target), check_trace=False), loss)


@each_loss
@each_reduction
def test_make_fx(name, reduction):
    loss = build(name, reduction=reduction)

    def slope(z, y):
        value = loss(z.requires_grad_(), y)
        return torch.autograd.grad(value.sum(), z)[0]

    traced = make_fx(loss)(*example(4))
    same([traced(*example(4))], [loss(*example(4))])
    logits, target = example(4)
    other = torch.randn(4, C)
    same([make_fx(slope)(logits, target)(other, target)], [slope(other.clone(), target)])


@each_loss
def test_fake_tensors(name):
    loss = build(name)
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
        logits, target = (mode.from_tensor(t) for t in example())
        value = loss(logits.requires_grad_(), target)
        value.backward()
    assert value.shape == () and logits.grad.shape == (7, C)
    same([loss(*example())], [build(name)(*example())])  # nothing of theirs is left behind


class Network(nn.Module):
    def __init__(self, loss):
        super().__init__()
        self.head, self.loss = nn.Linear(3, C), loss

    def forward(self, x, target):
        return self.loss(self.head(x), target)


@each_loss
def test_symbolic_trace_of_a_network_with_its_loss(name):
    network = Network(build(name))
    traced = torch.fx.symbolic_trace(network)
    for n in (4, 7):
        x, target = torch.randn(n, 3), example(n)[1]
        same([traced(x, target)], [network(x, target)])


@each_loss
def test_export_with_any_batch_size(name):
    loss = build(name)
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(loss, example(4), dynamic_shapes=({0: batch}, {0: batch}))
    runs_alike_at_other_sizes(program.module(), loss)


@each_loss
@pytest.mark.parametrize("dynamic", [True, None])
def test_compiled_at_several_batch_sizes(name, dynamic):
    torch.compiler.reset()
    loss = build(name)
    compiled = torch.compile(loss, backend="eager", fullgraph=True, dynamic=dynamic)
    for n in (4, 7, 11):
        batch = example(n)
        same(value_and_slope(compiled, *batch), value_and_slope(loss, *batch))


# -- devices without numbers -------------------------------------------------------------------------------------------


@each_loss
@each_reduction
def test_shapes_on_the_meta_device(name, reduction):
    logits, target = (t.to("meta") for t in example())
    value = build(name, reduction=reduction)(logits.requires_grad_(), target)
    assert value.is_meta and value.shape == ((7,) if reduction == "none" else ())
    value.sum().backward()
    assert logits.grad.is_meta and logits.grad.shape == (7, C)


@both_ways
@each_loss
@pytest.mark.parametrize("given", ["list", "tensor"])
def test_built_on_the_meta_device(name, given):
    counts, batch = COUNTS if given == "list" else torch.tensor(COUNTS), example()
    expected = value_and_slope(build(name), *batch)
    with torch.device("meta"):
        loss = build(name, counts)
    same(value_and_slope(loss, *batch), expected)
    same(value_and_slope(copy.deepcopy(loss).to_empty(device="cpu"), *batch), expected)
    loss.load_state_dict(build(name).state_dict(), assign=True)
    same(value_and_slope(loss, *batch), expected)


@each_loss
def test_there_and_back(name):
    loss, batch = build(name), example()
    expected = value_and_slope(loss, *batch)
    same(value_and_slope(loss.to("meta"), *batch), expected)
    same(value_and_slope(loss.to_empty(device="cpu"), *batch), expected)
    same(value_and_slope(nn.Sequential(build(name)).to_empty(device="cpu")[0], *batch), expected)
