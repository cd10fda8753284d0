"""What counts as being watched, and that nothing of it reaches the kernels in C."""

import pytest
import torch
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from equipoise import native
from equipoise.core.tracing import is_watched


class Functions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Operations(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def seen_by(transform):
    """What `is_watched` says inside of a transformation of a function of one tensor."""
    seen = []

    def look(x):
        seen.append(is_watched())
        return x.sin().sum()

    transform(look)
    return seen


@pytest.mark.parametrize(
    "transform",
    {
        "vmap": lambda f: torch.func.vmap(f)(torch.zeros(2, 2)),
        "grad": lambda f: torch.func.grad(f)(torch.zeros(2)),
        "functionalize": lambda f: torch.func.functionalize(f)(torch.zeros(2)),
        "make_fx": lambda f: make_fx(f)(torch.zeros(2)),
        "jit.trace": lambda f: torch.jit.trace(f, torch.zeros(2), check_trace=False),
        "jvp": lambda f: torch.func.jvp(f, (torch.zeros(2),), (torch.ones(2),)),
    }.items(),
    ids=lambda item: item[0],
)
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_transformations_watch(transform):
    assert seen_by(transform[1]) == [True]
    assert not is_watched()


def test_modes_watch():
    assert not is_watched()
    for mode in (Functions(), Operations(), torch._subclasses.FakeTensorMode(), forward_ad.dual_level()):
        with mode:
            assert is_watched()
    assert not is_watched()


def test_a_compiler_watches():
    look = torch.compile(lambda x: x + 1 if is_watched() else x, backend="eager", fullgraph=True)
    assert look(torch.zeros(1)).item() == 1


def test_a_default_device_does_not():
    with torch.device("meta"):
        assert not is_watched()
        with Functions():
            assert is_watched()


class Wrapped(torch.Tensor):
    """Looks like a tensor on the CPU and has no memory of its own."""

    @staticmethod
    def __new__(cls, inside):
        return torch.Tensor._make_wrapper_subclass(cls, inside.shape, dtype=inside.dtype)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError


class Named(torch.Tensor):
    """Has memory, and could read it in its own way."""


def fake(x):
    with torch._subclasses.FakeTensorMode() as mode:
        return mode.from_tensor(x)


X = torch.ones(2, 2)
REFUSED = {
    "float64": X.double(),
    "bfloat16": X.bfloat16(),
    "int32": X.int(),
    "complex": X.to(torch.complex64),
    "meta": X.to("meta"),
    "fake": fake(X),
    "wrapper": Wrapped(X),
    "subclass": X.as_subclass(Named),
    "sign to be turned": torch.imag(torch.complex(X, X).conj()),
    "zeros without memory": torch._efficientzerotensor(2, 2),
    "sparse": X.to_sparse(),
    "functional": torch._to_functional_tensor(X),
    "uninitialized": torch.nn.UninitializedParameter(),
} | ({"mkldnn": X.to_mkldnn()} if torch.backends.mkldnn.is_available() else {})


@pytest.mark.parametrize("name", REFUSED)
def test_only_plain_tensors_reach_the_kernels(name, monkeypatch):
    monkeypatch.setattr(native, "library", lambda: "there")
    assert native.suits(X, None, torch.nn.Parameter(X), X.t(), X[1:], X[:1].expand(4, 2), labels=torch.arange(2))
    assert not native.suits(REFUSED[name])
    assert not native.suits(X, REFUSED[name])
    assert not native.suits(X, labels=REFUSED[name])


def test_tensors_of_inference_mode_are_plain(monkeypatch):
    monkeypatch.setattr(native, "library", lambda: "there")
    with torch.inference_mode():
        x = torch.ones(2)
        assert native.suits(x)
    assert native.suits(x)


def test_what_a_transformation_lets_out_is_refused(monkeypatch):
    monkeypatch.setattr(native, "library", lambda: "there")
    kept = []
    torch.func.vmap(lambda x: kept.append(x) or x)(X)
    assert not native.suits(kept[0])


def test_memory_for_the_kernels_does_not_depend_on_defaults():
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            memory = native.floats(3, 2)
    finally:
        torch.set_default_dtype(torch.float32)
    assert (memory.dtype, memory.device.type, memory.shape) == (torch.float32, "cpu", (3, 2))
