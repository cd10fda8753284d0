"""What PyTorch asks of every module in its `test_modules.py`, asked of our norms."""

import copy
import io
import pickle

import pytest
import torch

from equipoise.norms import (
    set_example_weight,
)

from .conftest import DTYPES, SHAPES, C, expected, grads, trained


@pytest.mark.parametrize("dims", SHAPES)
@pytest.mark.parametrize(
    "options",
    [{}, {"momentum": None}, {"momentum": 0.3}, {"affine": False}, {"track_running_stats": False}, {"bias": False}],
    ids=lambda options: ",".join(options) or "default",
)
def test_forward(kind, make, dims, options):
    norm, x = make(**options), torch.randn(SHAPES[dims]) * 2 + 1
    y = norm(x)
    torch.testing.assert_close(y.double(), expected(kind, x, norm.weight, norm.bias), atol=1e-5, rtol=1e-4)
    assert norm.eval()(x).shape == x.shape


@pytest.mark.parametrize("dims", SHAPES)
def test_inference_takes_what_training_takes(norm, dims):
    trained(norm, *SHAPES[dims]).eval()
    x = torch.randn(SHAPES[dims])
    y = norm(x)
    torch.testing.assert_close(norm(x[2:3]), y[2:3], atol=1e-5, rtol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(norm(x), y, atol=1e-4, rtol=1e-4)


def test_constructor_makes_what_it_is_told(make):
    assert make(affine=False).weight is None and make(affine=False).bias is None
    assert make(bias=False).bias is None and make(bias=False).weight is not None
    untracked = make(track_running_stats=False)
    assert untracked.running_mean is None and untracked.running_var is None and not list(untracked.buffers())
    assert make(momentum=0.3).momentum == 0.3 and make(momentum=None).momentum is None
    with pytest.raises(TypeError):
        make(afine=False)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, *DTYPES])
def test_factory_arguments(make, dtype):
    norm = make(device="cpu", dtype=dtype)
    assert norm.weight.dtype == norm.bias.dtype == dtype
    averages = {b.dtype for b in norm.buffers() if b.is_floating_point()}
    assert averages == {torch.promote_types(dtype, torch.float32)}
    x = torch.randn(8, C, 3, 4).to(dtype)
    assert norm(x).dtype == dtype and norm.eval()(x).dtype == dtype


def test_factory_arguments_meta(make):
    norm = make(device="meta")
    assert all(t.is_meta for t in (*norm.parameters(), *norm.buffers()))
    real = norm.to_empty(device="cpu")
    real.reset_parameters()
    assert all(torch.equal(a, b) for a, b in zip(real.state_dict().values(), make().state_dict().values(), strict=True))


def test_built_on_the_meta_device_and_filled(make):
    source = trained(make(), 8, C, 3, 4)
    with torch.device("meta"):
        norm = make()
    norm.load_state_dict(source.state_dict(), assign=True)
    x = torch.randn(3, C, 3, 4)
    torch.testing.assert_close(norm.eval()(x), source.eval()(x))


def test_meta_forward(make):
    norm, x = make(device="meta"), torch.empty(8, C, 3, 4, device="meta")
    assert norm(x).is_meta and norm.eval()(x).shape == x.shape


def test_skip_init(make):
    norm = make()
    arguments = {"groups": 3} if hasattr(norm, "groups") else {}
    bare = torch.nn.utils.skip_init(type(norm), C, **arguments)
    assert bare.weight.shape == (C,) and not bare.weight.is_meta


@pytest.mark.parametrize("default", [torch.float64, torch.bfloat16])
def test_default_dtype(make, default):
    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        norm, x = make(), torch.randn(8, C, 3, 4)
        y = norm(x)
        assert norm.weight.dtype == y.dtype == default and norm.eval()(x).dtype == default
    finally:
        torch.set_default_dtype(before)
    assert y.isfinite().all() and norm.running_mean.abs().max() < 10


def test_repr(make):
    assert repr(make()).startswith(type(make()).__name__ + "(") and "affine=False" in repr(make(affine=False))


def test_pickle_and_deepcopy(norm):
    trained(norm, 8, C, 3, 4).eval()
    x, file = torch.randn(4, C, 3, 4), io.BytesIO()
    torch.save(norm, file)
    file.seek(0)
    for twin in (pickle.loads(pickle.dumps(norm)), copy.deepcopy(norm), torch.load(file, weights_only=False)):
        assert torch.equal(twin(x), norm(x)) and twin.momentum == norm.momentum


@pytest.mark.parametrize("training", [True, False])
def test_non_contiguous(norm, training):
    trained(norm, 8, C, 3, 4).train(training)
    twin, wide = copy.deepcopy(norm), torch.randn(8, 3, 4, 2 * C)
    x = wide[..., ::2].permute(0, 3, 1, 2).requires_grad_()
    packed = x.detach().clone(memory_format=torch.contiguous_format).requires_grad_()
    y, same = norm(x), twin(packed)
    torch.testing.assert_close(y, same, atol=1e-5, rtol=1e-5)
    found, wanted = grads(y, x, norm.weight, norm.bias), grads(same, packed, twin.weight, twin.bias)
    torch.testing.assert_close(found, wanted, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("shape", [(4, C), (4, C, 2, 2)])
@pytest.mark.parametrize("training", [True, False])
def test_gradients_of_first_and_second_order(make, training, shape):
    norm = make(dtype=torch.float64, track_running_stats=not training).train(training)
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    if not training:
        trained(norm.train().float(), *shape)
        norm.double().eval()
    assert torch.autograd.gradcheck(norm, x) and torch.autograd.gradgradcheck(norm, x, atol=1e-4)


@pytest.mark.parametrize("layout", [torch.channels_last, torch.channels_last_3d])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("graph", [True, False])
def test_memory_format_is_kept(norm, layout, training, graph):
    shape = SHAPES["4d" if layout == torch.channels_last else "5d"]
    norm = trained(norm, *shape).to(memory_format=layout).train(training)
    twin, x = copy.deepcopy(norm), torch.randn(shape)
    lying = x.contiguous(memory_format=layout).requires_grad_(graph)
    with torch.set_grad_enabled(graph):
        y = norm(lying)
    assert y.is_contiguous(memory_format=layout)
    torch.testing.assert_close(y, twin(x), atol=1e-5, rtol=1e-5)
    if graph:
        assert grads(y, lying)[0].is_contiguous(memory_format=layout)


def test_training_and_inference_differ(norm, kind):
    x = torch.randn(8, C, 3, 4) * 3 + 1
    assert torch.allclose(norm(x), norm.eval()(x), atol=1e-4) == (kind == "group")


@pytest.mark.parametrize("bad", [(C,), (2, C + 1, 3, 3)])
def test_inputs_of_another_shape_are_refused(norm, bad):
    for training in (True, False):
        with pytest.raises((ValueError, RuntimeError)):
            norm.train(training)(torch.randn(bad))


def test_save_load(norm, make):
    trained(norm, 8, C, 3, 4)
    twin = make()
    assert twin.load_state_dict(norm.state_dict()).missing_keys == []
    for name, value in norm.state_dict().items():
        assert torch.equal(twin.state_dict()[name], value)
    state = dict(norm.state_dict())
    state.pop("weight")
    with pytest.raises(RuntimeError, match="Missing key"):
        make().load_state_dict(state)


@pytest.mark.parametrize("cast", ["half", "bfloat16", "double"])
@pytest.mark.parametrize("mean", [0.0, 300.0, 3e4])
def test_casts_keep_what_inference_gives(norm, cast, mean):
    """float16 ends at 65504: the square of 256 does not fit."""
    x = torch.randn(64, C, 3, 4) * (2 + mean / 100) + mean
    for _ in range(60):
        norm(x)
    norm.eval()
    set_example_weight(norm, 0.0)
    wanted = copy.deepcopy(norm).double()(x.double())
    getattr(norm, cast)()
    assert norm.weight.dtype == getattr(torch, {"half": "float16"}.get(cast, cast.replace("double", "float64")))
    given = x.to(norm.weight.dtype)
    got = norm(given)
    assert got.dtype == norm.weight.dtype and got.isfinite().all()
    # what rounding x costs is no fault of the norm
    rounding = copy.deepcopy(norm).double()(given.double()).detach()
    torch.testing.assert_close(got.double(), rounding, atol=2e-2, rtol=2e-2)
    if mean == 0:
        torch.testing.assert_close(got.double(), wanted, atol=5e-2, rtol=5e-2)
    again = norm.float()
    torch.testing.assert_close(again(x).double(), wanted, atol=5e-2, rtol=2e-2)


def test_trains_in_half_precision(norm):
    norm.half()
    x = (torch.randn(16, C, 3, 4) * 4 + 400).half()
    for _ in range(3):
        y = norm(x)
    assert y.dtype == torch.float16 and y.isfinite().all()
    assert all(b.isfinite().all() for b in norm.buffers()) and norm.eval()(x).isfinite().all()
