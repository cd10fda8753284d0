"""What PyTorch's own tests ask of its norm modules, asked of ours: `test_nn.py`, `test_modules.py`, `test_fx.py`,
the tests of `torch.func` and of weight averaging; and what Composer's tests ask of its ghost batch norm.

Every question is put to all five norms. docs/results/conventions.md counts the answers.
"""

import copy
import io
import pickle
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.fx.experimental.optimization import fuse
from torch.optim.swa_utils import update_bn

from equipoise import native
from equipoise.norms import (
    BatchGroupNorm2d,
    BatchNorm2d,
    BatchRenorm2d,
    GhostBatchNorm2d,
    GroupNorm2d,
    replace_norm,
    set_example_weight,
)

C = 6
NORMS = {
    "batch": lambda **options: BatchNorm2d(C, **options),
    "ghost": lambda **options: GhostBatchNorm2d(C, 4, **options),
    "batch_group": lambda **options: BatchGroupNorm2d(C, 3, 2, **options),
    "group": lambda **options: GroupNorm2d(C, 3, **options),
    "batch_renorm": lambda **options: BatchRenorm2d(C, **options),
}
WHOLE_BATCH = ("batch", "batch_renorm")
SHAPES = {"2d": (8, C), "3d": (8, C, 5), "4d": (8, C, 3, 4), "5d": (8, C, 2, 3, 2)}
DTYPES = [torch.float32, torch.float64]


@pytest.fixture(params=[True, False], ids=["kernels", "PyTorch alone"], autouse=True)
def _kernels(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(native, "library", lambda: None)
    elif native.library() is None:
        pytest.skip("the package was installed without a C compiler")


@pytest.fixture(params=NORMS)
def kind(request):
    return request.param


@pytest.fixture
def make(kind):
    return NORMS[kind]


@pytest.fixture
def norm(make):
    made = make()
    with torch.no_grad():
        made.weight.uniform_(0.5, 1.5)
        made.bias.normal_()
    return made


def expected(kind, x, weight=None, bias=None):
    """Training by PyTorch's functions, in float64."""
    x, weight, bias = (t if t is None else t.detach().double() for t in (x, weight, bias))
    size = {"ghost": 4, "batch_group": 2, "group": 1}.get(kind, len(x))
    if kind in ("batch_group", "group"):
        blocks = [part.transpose(0, 1).flatten(1)[None] for part in x.split(size)]  # examples become positions
        blocks = [F.group_norm(b, 3).view(C, size, *x.shape[2:]).transpose(0, 1) for b in blocks]
    else:
        blocks = [F.batch_norm(part, None, None, training=True) for part in x.split(size)]
    shape = (1, C, *[1] * (x.dim() - 2))
    y = torch.cat(blocks)
    y = y if weight is None else y * weight.view(shape)
    return y if bias is None else y + bias.view(shape)


def trained(norm, *shape, batches=3):
    for i in range(batches):
        norm(torch.randn(shape) * 2 + i)
    return norm


def grads(y, *leaves):
    return torch.autograd.grad(y.square().sum(), leaves)


# -- test_modules.py ---------------------------------------------------------------------------------------------------


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


# -- test_nn.py --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, C), (1, C, 1), (1, C, 1, 1)])
def test_one_value_a_statistic_is_refused_in_training(kind, make, shape):
    groups = {"batch_group": 3, "group": 3}.get(kind, C)
    norm = make()
    if groups < C:
        norm.groups = C
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        norm(torch.randn(shape))
    assert norm.eval()(torch.randn(shape)).shape == shape


@pytest.mark.parametrize("dims", SHAPES)
@pytest.mark.parametrize("training", [True, False])
def test_empty_batches(norm, training, dims):
    trained(norm, *SHAPES[dims]).train(training)
    before = {name: value.clone() for name, value in norm.named_buffers() if value.is_floating_point()}
    for alpha in (None, 0.0, 0.5):
        if alpha is not None:
            set_example_weight(norm, alpha)
        x = torch.randn(0, *SHAPES[dims][1:], requires_grad=True)
        y = norm(x)
        norm.zero_grad()
        y.sum().backward()
        assert y.shape == x.shape == x.grad.shape
        assert norm.weight.grad.tolist() == norm.bias.grad.tolist() == [0.0] * C
    assert all(torch.equal(norm.get_buffer(name), value) for name, value in before.items())


def test_momentum_none_is_the_average_of_all_batches(make):
    norm, batches = make(momentum=None), [torch.randn(8, C, 3, 4) + i for i in range(4)]
    for x in batches:
        norm(x)
    means = torch.stack([x.mean((0, 2, 3)) for x in batches])
    squares = torch.stack([x.square().mean((0, 2, 3)) for x in batches])
    torch.testing.assert_close(norm.running_mean, means.mean(0), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(norm.running_square, squares.mean(0), atol=1e-4, rtol=1e-5)
    assert int(norm.num_batches_tracked) == 4


def test_resets(norm, make):
    fresh = make().state_dict()
    trained(norm, 8, C, 3, 4).reset_running_stats()
    for name, value in norm.state_dict().items():
        assert name in ("weight", "bias") or torch.equal(value, fresh[name])
    assert not torch.equal(norm.weight, torch.ones(C))
    trained(norm, 8, C, 3, 4).reset_parameters()
    assert all(torch.equal(value, fresh[name]) for name, value in norm.state_dict().items())


def test_running_var(norm, kind):
    trained(norm, 8, C, 3, 4).eval()
    assert norm.running_var.shape == (C,) and norm.running_var.dtype == torch.float32
    x = torch.randn(5, C, 3, 4)
    if kind in ("batch", "ghost", "batch_renorm"):
        stock = F.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias)
        torch.testing.assert_close(norm(x), stock, atol=1e-5, rtol=1e-5)
    norm.running_mean.zero_()
    norm.running_var = torch.full((C,), 4.0)
    torch.testing.assert_close(norm.running_var, torch.full((C,), 4.0))


def test_statistics_that_are_not_to_be_tracked_stay(norm):
    trained(norm, 8, C, 3, 4)
    norm.track_running_stats = False
    before = [b.clone() for b in norm.buffers()]
    norm(torch.randn(8, C, 3, 4))
    assert all(torch.equal(a, b) for a, b in zip(norm.buffers(), before, strict=True))


def test_without_statistics_inference_is_training(kind, make):
    norm, x = make(track_running_stats=False).eval(), torch.randn(8, C, 3, 4)
    torch.testing.assert_close(norm(x).double(), expected(kind, x), atol=1e-5, rtol=1e-4)


def test_frozen_in_inference_mode(norm):
    trained(norm, 8, C, 3, 4).eval()
    before = copy.deepcopy(norm.state_dict())
    norm(torch.randn(8, C, 3, 4))
    assert all(torch.equal(a, b) for a, b in zip(norm.state_dict().values(), before.values(), strict=True))


@pytest.mark.parametrize("stock", [nn.BatchNorm1d(C), nn.BatchNorm2d(C), nn.BatchNorm3d(C), nn.SyncBatchNorm(C)])
def test_batch_norm_states_load_strictly(norm, stock):
    if not isinstance(stock, nn.SyncBatchNorm):
        trained(stock, *SHAPES[{nn.BatchNorm1d: "3d", nn.BatchNorm2d: "4d", nn.BatchNorm3d: "5d"}[type(stock)]])
    norm.load_state_dict(stock.state_dict())
    torch.testing.assert_close(norm.moving()[1], stock.running_var, atol=1e-5, rtol=1e-4)
    assert torch.equal(norm.num_batches_tracked, stock.num_batches_tracked)


def test_states_saved_before_batches_were_counted_load_strictly(norm, make):
    state = dict(trained(norm, 8, C, 3, 4).state_dict())
    state.pop("num_batches_tracked", None)
    twin = make()
    twin.load_state_dict(state)
    assert torch.equal(twin.running_square, norm.running_square)


def test_group_norm_states_load_strictly():
    stock, norm, x = nn.GroupNorm(3, C), GroupNorm2d(C, 3), torch.randn(4, C, 3, 4)
    nn.init.normal_(stock.weight)
    norm.load_state_dict(stock.state_dict())
    torch.testing.assert_close(norm.eval()(x), stock(x), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(norm.train()(x), stock(x), atol=1e-5, rtol=1e-5)
    network = nn.Sequential(GroupNorm2d(C, 3))
    network.load_state_dict(nn.Sequential(stock).state_dict())


def test_a_state_that_has_lost_a_part_is_refused():
    state = dict(trained(GroupNorm2d(C, 3), 8, C, 3, 4).state_dict())
    del state["running_mean"]
    with pytest.raises(RuntimeError, match="running_mean"):
        GroupNorm2d(C, 3).load_state_dict(state)


@pytest.mark.parametrize("momentum", [0.1, 0.25, None])
def test_replace_norm_keeps_the_momentum(make, momentum):
    network = nn.Sequential(nn.BatchNorm2d(C, momentum=momentum))
    network[0](torch.randn(8, C, 3, 4))
    replace_norm(network, lambda c: make())
    assert network[0].momentum == momentum and int(network[0].num_batches_tracked) == 1
    replace_norm(network, nn.BatchNorm2d)
    assert network[0].momentum == momentum
    chosen = nn.Sequential(nn.BatchNorm2d(C, momentum=momentum))
    replace_norm(chosen, lambda c: make(momentum=0.5))
    assert chosen[0].momentum == 0.5
    replace_norm(chosen, "ghost")
    assert chosen[0].momentum == 0.5
    replace_norm(chosen, "ghost(decay=0.99)")  # the default, but said
    assert chosen[0].decay == 0.99


# -- conversions -------------------------------------------------------------------------------------------------------


def test_sync_batch_norm_takes_batch_norm_alone(kind, norm):
    """Anything else would silently train, or predict, as something else."""
    trained(norm, 8, C, 3, 4)
    if kind == "batch":
        converted = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(norm))
        assert torch.equal(converted[0].running_var, norm.running_var)
        set_example_weight(norm, 0.3)
    with pytest.raises(TypeError, match="convert_sync_batchnorm would lose what"):
        nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(norm))


def test_sync_batch_norm_of_a_stock_norm_that_weighs():
    network = nn.Sequential(nn.BatchNorm2d(C))
    set_example_weight(network, 0.3)
    with pytest.raises(TypeError, match=r"set_example_weight\(network, None\)"):
        nn.SyncBatchNorm.convert_sync_batchnorm(network)
    set_example_weight(network, None)
    assert isinstance(nn.SyncBatchNorm.convert_sync_batchnorm(network)[0], nn.SyncBatchNorm)


@pytest.mark.parametrize("alpha", [None, 0.0, 0.3])
def test_fusing_with_a_convolution_is_right_or_refused(kind, norm, alpha):
    conv, x = nn.Conv2d(2, C, 3), torch.randn(4, 2, 5, 5)
    trained(norm, 8, C, 3, 4)
    set_example_weight(norm, alpha)
    network = nn.Sequential(conv, norm).eval()
    at_no_weight = kind in ("batch", "batch_renorm") and alpha is not None
    if alpha or at_no_weight or kind in ("batch_group", "group"):
        with pytest.raises(TypeError, match="fuse_conv_bn_eval would lose what"):
            torch.nn.utils.fuse_conv_bn_eval(conv, norm)
    else:
        fused = torch.nn.utils.fuse_conv_bn_eval(conv, norm)
        torch.testing.assert_close(fused(x), network(x), atol=1e-5, rtol=1e-5)
    by_graph = fuse(network)
    torch.testing.assert_close(by_graph(x), network(x), atol=1e-5, rtol=1e-5)


def test_scripting(kind, norm):
    trained(norm, 8, C, 3, 4).eval()
    x = torch.randn(4, C, 3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        if kind == "batch":
            torch.testing.assert_close(torch.jit.script(nn.Sequential(copy.deepcopy(norm)))(x), norm(x))
            set_example_weight(norm, 0.3)
        with pytest.raises(NotImplementedError, match="torch.jit.script cannot compile"):
            torch.jit.script(nn.Sequential(norm))


# -- weight averaging --------------------------------------------------------------------------------------------------


def test_update_bn(make):
    """As after stochastic weight averaging: the statistics of one pass over the data, whatever they were."""
    norm, batches = make(), [torch.randn(8, C, 3, 4) * 2 + i for i in range(3)]
    trained(norm, 8, C, 3, 4).eval()
    momentum, network = norm.momentum, nn.Sequential(norm).eval()
    update_bn(batches, network)
    assert norm.momentum == momentum and not norm.training
    means = torch.stack([x.mean((0, 2, 3)) for x in batches]).mean(0)
    squares = torch.stack([x.square().mean((0, 2, 3)) for x in batches]).mean(0)
    torch.testing.assert_close(norm.running_mean, means, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(norm.moving()[1], squares - means.square(), atol=1e-4, rtol=1e-4)


def test_lightnings_weight_averaging(make):
    callbacks = pytest.importorskip("lightning.pytorch.callbacks")
    network, batches = nn.Sequential(trained(make(), 8, C, 3, 4)), [torch.randn(8, C, 3, 4) + i for i in range(3)]
    norm, momentum = network[0], network[0].momentum
    averaging = callbacks.StochasticWeightAveraging(swa_lrs=0.1)
    network.device, network.dtype = torch.device("cpu"), torch.float32  # what a LightningModule knows of itself
    averaging.reset_batch_norm_and_save_state(network)
    for x in batches:
        network(x)
    averaging.reset_momenta()
    means = torch.stack([x.mean((0, 2, 3)) for x in batches]).mean(0)
    squares = torch.stack([x.square().mean((0, 2, 3)) for x in batches]).mean(0)
    assert norm.momentum == momentum
    torch.testing.assert_close(norm.running_mean, means, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(norm.moving()[1], squares - means.square(), atol=1e-4, rtol=1e-4)


# -- torch.func and forward mode ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_gradients_of_each_sample(norm, alpha):
    set_example_weight(trained(norm, 8, C, 3, 4).eval(), alpha)
    x, parameters = torch.randn(4, C, 3, 4), dict(norm.named_parameters())

    def loss(parameters, x):
        return torch.func.functional_call(norm, parameters, (x[None],)).square().sum()

    found = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)
    for i, one in enumerate(x):
        wanted = grads(norm(one[None]), norm.weight, norm.bias)
        torch.testing.assert_close((found["weight"][i], found["bias"][i]), wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("training", [True, False])
def test_an_ensemble(kind, make, training):
    """Untracked norms train in it; tracked ones write into their buffers, which each member has its own of."""
    members = [trained(make(), 8, C, 3, 4).train(training) for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(members)
    x = torch.randn(8, C, 3, 4)

    def call(parameters, buffers, x):
        return torch.func.functional_call(members[0], (parameters, buffers), (x,))

    found = torch.func.vmap(call, in_dims=(0, 0, None))(parameters, buffers, x)
    wanted = torch.stack([member(x) for member in members])
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
    for name in buffers:
        after = torch.stack([member.get_buffer(name) for member in members])
        torch.testing.assert_close(buffers[name], after, atol=1e-5, rtol=1e-5)


def test_one_buffer_for_many_mapped_batches_is_refused_as_by_pytorch(norm):
    with pytest.raises(RuntimeError, match="broadcast shape|vmapped"):
        torch.func.vmap(norm)(torch.randn(3, 8, C, 3, 4))


@pytest.mark.parametrize("training", [True, False])
def test_forward_mode(make, training):
    norm = make(dtype=torch.float64, track_running_stats=not training).train(training)
    x, tangent = (torch.randn(4, C, 2, 2, dtype=torch.float64) for _ in range(2))
    _, found = torch.func.jvp(norm, (x,), (tangent,))
    step = 1e-6
    wanted = (norm(x + step * tangent) - norm(x - step * tangent)) / (2 * step)
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


# -- Composer's ghost batch norm ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", SHAPES)
@pytest.mark.parametrize("n", [8, 12, 10])
def test_each_ghost_has_mean_0_and_variance_1(dims, n):
    y = GhostBatchNorm2d(C, 4)(torch.randn(n, *SHAPES[dims][1:]) * 3 + 2).detach()
    for ghost in y.split(4):
        values = ghost.transpose(0, 1).flatten(1)
        torch.testing.assert_close(values.mean(1), torch.zeros(C), atol=1e-5, rtol=0)
        torch.testing.assert_close(values.var(1, correction=0), torch.ones(C), atol=1e-3, rtol=0)


def test_fewer_examples_than_a_ghost_are_one_ghost():
    """Composer refuses them; the last batch of an epoch would then end the training."""
    x = torch.randn(3, C, 3, 4)
    torch.testing.assert_close(GhostBatchNorm2d(C, 16)(x), BatchNorm2d(C)(x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("stock", "dims"), [(nn.BatchNorm1d, "2d"), (nn.BatchNorm2d, "4d"), (nn.BatchNorm3d, "5d")])
def test_ghosts_take_the_place_of_batch_norms(stock, dims):
    network = nn.Sequential(stock(C), nn.ReLU())
    assert replace_norm(network, "ghost(ghost_size=4)") == ["0"]
    network(torch.randn(SHAPES[dims])).sum().backward()
    assert network[0].weight.grad is not None
