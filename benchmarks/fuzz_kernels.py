"""Odd tensors at the front of the kernels in C: never a crash, never another number than PyTorch's formula.

    python benchmarks/fuzz_kernels.py                                          # 10,000 calls, some minutes
    ATEN_CPU_CAPABILITY=avx2 python benchmarks/fuzz_kernels.py                 # with the kernels for that processor
    python benchmarks/fuzz_kernels.py --only 4711                              # one call again, in this process

A call is drawn by its number: a loss or a norm with random parameters; numbers that lie in memory in some odd way, are
of some type, class or device; a way to call it (plainly, in a mode, traced, mapped, differentiated in some manner); and
PyTorch's default type and device. What comes out is compared with the plain formula in float64 on an ordinary tensor,
which never reaches a kernel. A call may raise an error only where PyTorch's own layer raises one for the same tensor in
the same way. Children do the work, so that a crash is counted, not suffered.

Tolerances: a value of float32 is off by some units in the last place of the largest number that went into it, which
for losses are logits scaled by up to 30 (2e-5 of the largest result), and for norms differences that cancel and are
then divided by a deviation (2e-4, as in the tests of the norms). Results in half precision are rounded once more.
Where two numbers that are nearly the same make a group, their deviation is known to few places: a result may then be
off by four times what the formula in PyTorch's operations, rounded likewise, is off by.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from equipoise import core, native
from equipoise.native import losses as native_losses
from equipoise.native import norms as native_norms

SEED, CALLS, CHUNK = 0, 10_000, 500
Function = Callable[[Tensor], Tensor]


# -- tensors of the same numbers ---------------------------------------------------------------------------------------


class Named(Tensor):
    """A subclass that adds nothing."""


def _misaligned(x: Tensor) -> Tensor:
    if not x.numel():
        return x
    raw = bytearray(4 * x.numel() + 8)
    view = torch.frombuffer(raw, dtype=torch.uint8, count=4 * x.numel(), offset=1)
    view.copy_(torch.frombuffer(bytearray(x.contiguous().numpy().tobytes()), dtype=torch.uint8))
    return torch.frombuffer(raw, dtype=torch.float32, count=x.numel(), offset=1).view(x.shape)


def _fake(x: Tensor) -> Tensor:
    return torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True).from_tensor(x)


DISGUISES: dict[str, Callable[[Tensor], Tensor]] = {
    "plain": lambda x: x,
    "transposed": lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
    "last dimension first": lambda x: x.movedim(-1, 0).contiguous().movedim(0, -1),
    "every other row": lambda x: x.repeat_interleave(2, 0)[::2],
    "part of something wider": lambda x: torch.cat([x, x], -1)[..., : x.shape[-1]],
    "an offset": lambda x: torch.cat([x[:1], x])[1:],
    "turned twice": lambda x: x.flip(0).flip(0),
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x,
    "wide strides": lambda x: torch.stack([x, -x], -1)[..., 0],
    "a sign to be turned": lambda x: torch.imag(torch.complex(x, -x).conj()),
    "parameter": lambda x: nn.Parameter(x.clone(), requires_grad=False),
    "subclass": lambda x: x.as_subclass(Named),
    "odd address": _misaligned,
    "made in inference mode": lambda x: _in_inference_mode(x),
    "float64": lambda x: x.double(),
    "bfloat16": lambda x: x.bfloat16(),
    "float16": lambda x: x.half(),
    "meta": lambda x: x.to("meta"),
    "fake": _fake,
    "sparse": lambda x: x.to_sparse(),
    "from numpy": lambda x: torch.from_numpy(x.contiguous().numpy().copy()),
}


def _in_inference_mode(x: Tensor) -> Tensor:
    with torch.inference_mode():
        return x.clone()


# -- ways to call ------------------------------------------------------------------------------------------------------


class _Functions(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class _Operations(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Outcome(NamedTuple):
    """What came of a call: the value, and the slope of its product with the weights where the way has one."""

    value: Tensor
    slope: Tensor | None = None


def _like(value: Tensor, weights: Tensor) -> Tensor:
    """As many of the weights as there are values."""
    return weights[: value.numel()].view(value.shape).to(value.device, value.dtype)


def forward(f: Function, x: Tensor, weights: Tensor) -> Outcome:
    return Outcome(f(x))


def backward(f: Function, x: Tensor, weights: Tensor) -> Outcome:
    x = x.detach().requires_grad_()
    value = f(x)
    return Outcome(value, *torch.autograd.grad(value, x, _like(value, weights)))


def graph(f: Function, x: Tensor, weights: Tensor) -> Outcome:
    x = x.detach().requires_grad_()
    value = f(x)
    (slope,) = torch.autograd.grad(value, x, _like(value, weights), create_graph=True)
    return Outcome(value, slope)


def batched_gradients(f: Function, x: Tensor, weights: Tensor) -> Outcome:
    x = x.detach().requires_grad_()
    value = f(x)
    given = _like(value, weights)
    (both,) = torch.autograd.grad(value, x, torch.stack([given, 2 * given]), is_grads_batched=True)
    return Outcome(value, both[0])


def func_grad(f: Function, x: Tensor, weights: Tensor) -> Outcome:
    def total(z: Tensor) -> tuple[Tensor, Tensor]:
        value = f(z)
        return (value * _like(value, weights)).sum(), value

    slope, value = torch.func.grad(total, has_aux=True)(x)
    return Outcome(value, slope)


def vmapped(f: Function, x: Tensor, weights: Tensor) -> Outcome:
    return Outcome(torch.func.vmap(f, randomness="same")(torch.stack([x, x]))[1])


def functionalized(f: Function, x: Tensor, weights: Tensor) -> Outcome:
    return Outcome(torch.func.functionalize(f)(x))


def forward_mode(f: Function, x: Tensor, weights: Tensor) -> Outcome:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        return Outcome(forward_ad.unpack_dual(f(dual)).primal)


def traced(f: Function, x: Tensor, weights: Tensor) -> Outcome:
    if x.is_meta:
        raise NotImplementedError("PyTorch's tracer compares constants, which it cannot where they have no numbers")
    return Outcome(torch.jit.trace(f, (torch.randn_like(x),), check_trace=False)(x))


def proxied(f: Function, x: Tensor, weights: Tensor) -> Outcome:
    x = x.as_subclass(Tensor) if type(x) is Named else x  # it knows no subclasses: their numbers become constants
    return Outcome(make_fx(f)(torch.randn_like(x))(x))


def within(*contexts: Callable[[], contextlib.AbstractContextManager[Any]], way: Any = backward) -> Any:
    def call(f: Function, x: Tensor, weights: Tensor) -> Outcome:
        with contextlib.ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context())
            return way(f, x, weights)

    return call


WAYS: dict[str, Callable[[Function, Tensor, Tensor], Outcome]] = {
    "forward": forward,
    "backward": backward,
    "backward with a graph": graph,
    "gradients in a batch": batched_gradients,
    "func.grad": func_grad,
    "vmap": vmapped,
    "functionalize": functionalized,
    "forward mode": forward_mode,
    "jit.trace": traced,
    "make_fx": proxied,
    "no_grad": within(torch.no_grad, way=forward),
    "inference mode": within(torch.inference_mode, way=forward),
    "function mode": within(_Functions),
    "dispatch mode": within(_Operations),
    "autocast": within(lambda: torch.autocast("cpu", torch.bfloat16)),
    "default device as a context": within(lambda: torch.device("meta")),
    "anomaly mode": within(lambda: torch.autograd.set_detect_anomaly(True, check_nan=False)),
}
COMMON = ["backward", "forward"]  # drawn as often as all others together


# -- what is called ----------------------------------------------------------------------------------------------------


class Subject(NamedTuple):
    """A loss or a norm, what PyTorch has of its kind, and an input; `exact` is the subject for float64."""

    name: str
    ours: Function
    exact: Function
    plain: Function  # `ours` once more, with a state of its own
    pytorchs: Function
    x: Tensor
    state: Callable[[], list[tuple[Tensor, Tensor]]]  # buffers after the call, as they are and as they should be
    rounding: dict[torch.dtype, float]  # how far a result may be off, as a share of the largest


# a loss that is not named here is drawn with the first of its examples
LOSS_PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "cdt": [{"gamma": 0.0}, {"gamma": 0.5}],
    "equalization": [{"gamma": 1.0, "threshold": 0.05}, {"gamma": 0.0}],  # nothing is left to chance
    "focal": [{"gamma": 0.5}, {"gamma": 2.0}, {"gamma": 3.0}],
    "label_smoothing": [{"alpha": 0.0}, {"alpha": 0.3}],
    "ldam": [{}, {"scale": 1.0}],
    "logit_adjusted": [{"tau": 0.0}, {"tau": 2.0}],
    "logit_norm": [{}, {"tau": 1.0}],
    "sigmoid_focal": [{"gamma": 0.0}, {"gamma": 2.0}],
    "squared_error": [{}, {"kappa": 1.0, "magnitude": 1.0}],
}
HALVES = {torch.bfloat16: 2**-6, torch.float16: 2**-9}  # up to four roundings on the way
LABELS: list[Callable[[Tensor], Tensor]] = [
    lambda y: y,
    lambda y: y.int(),
    lambda y: y.to(torch.uint8),
    lambda y: torch.stack([y, y], 1)[:, 0],
    lambda y: torch.cat([y[:1], y])[1:],
    lambda y: y.as_subclass(Named),
    lambda y: y[:1].expand(len(y)),
]


def pick(rng: np.random.Generator, choices: Any) -> Any:
    choices = list(choices)
    return choices[rng.integers(len(choices))]


def drawn_loss(rng: np.random.Generator) -> Subject:
    card = pick(rng, core.cards("loss"))
    n, c = int(pick(rng, [0, 1, 2, 7, 65, 200])), int(pick(rng, [2, 3, 10, 16, 63, 64, 65, 300]))
    facts = {"class_counts": rng.integers(1, 900, c).tolist()} if card.facts else {}
    parameters = pick(rng, LOSS_PARAMETERS.get(card.name, card.examples[:1]))
    loss = card.factory(**facts, **parameters, reduction=pick(rng, ["mean", "sum", "none"]))
    logits = torch.from_numpy(rng.normal(0, pick(rng, [0.5, 3.0]), (n, c)).astype(np.float32))
    target = pick(rng, LABELS)(torch.from_numpy(rng.integers(0, c, n)))
    plain = target.as_subclass(Tensor).long().contiguous()

    def ours(z: Tensor) -> Tensor:
        return loss(z, target.to(z.device) if z.is_meta else target)

    def pytorchs(z: Tensor) -> Tensor:
        labels = target if target.dtype is torch.int64 else plain  # it takes no other type
        labels = labels.to(z.device) if z.is_meta else labels
        if card.name in ("squared_error", "sigmoid", "sigmoid_focal"):
            one_hot = torch.zeros_like(z).scatter_(1, labels[:, None], 1)
            theirs = F.mse_loss if card.name == "squared_error" else F.binary_cross_entropy_with_logits
            return theirs(z, one_hot, reduction=loss.reduction)
        return F.cross_entropy(z, labels, reduction=loss.reduction)

    exact = copy.deepcopy(loss)
    rounding = HALVES | {torch.float64: 1e-9, torch.float32: 2e-5}
    return Subject(card.name, ours, lambda z: exact(z, plain), ours, pytorchs, logits, list, rounding)


def drawn_norm(rng: np.random.Generator) -> Subject:
    card = pick(rng, core.cards("norm"))
    n, c = int(pick(rng, [2, 3, 8, 17])), int(pick(rng, [2, 6, 8, 33]))
    positions = pick(rng, [(), (5,), (4, 4), (1, 1), (3, 2), (2, 2, 3)])
    x = rng.normal(pick(rng, [0.0, 3.0]), 1.0, (n, c, *positions)).astype(np.float32)
    norm, exact = card.factory(c), card.factory(c).double()
    weight, bias, mean, var = (torch.from_numpy(rng.uniform(0.5, 1.5, c).astype(np.float32)) for _ in range(4))
    example_weight, training = float(pick(rng, [0.0, 0.3, 1.0])), bool(rng.integers(2))
    for module in (norm, exact):
        nn.utils.vector_to_parameters(torch.cat([weight, bias]).to(module.weight.dtype), module.parameters())
        module.set_moving(mean.to(module.weight.dtype), var.to(module.weight.dtype))
        module.example_weight = example_weight
        module.train(training)
    weight, bias, moving = nn.Parameter(weight), nn.Parameter(bias), mean.clone()

    def pytorchs(z: Tensor) -> Tensor:
        if not training:
            return F.batch_norm(z, mean, var, weight, bias)
        y = F.batch_norm(z, None, None, weight, bias, training=True)
        moving.lerp_(z.detach().transpose(0, 1).flatten(1).mean(1).to(moving.dtype), 0.1)
        return y

    def state() -> list[tuple[Tensor, Tensor]]:
        there = dict(exact.named_buffers())
        return [(b, there[name]) for name, b in norm.named_buffers() if b.is_floating_point() and name != "square_rest"]

    # the moving averages are float32, whatever comes in
    rounding = HALVES | {torch.float64: 1e-6, torch.float32: 2e-4}
    return Subject(card.name, norm, exact, copy.deepcopy(norm), pytorchs, torch.from_numpy(x), state, rounding)


# -- one call ----------------------------------------------------------------------------------------------------------


class Call(NamedTuple):
    """Its parts by name, how it ended, and whether a kernel in C had a part in it."""

    parts: str
    ending: str
    reached: bool


FINE = ("agrees", "same shape", "PyTorch refuses too")  # how a call may end; anything else says what is wrong
DEFAULTS = ["float32"] * 5 + ["float64", "bfloat16", "float16", "meta"]
WITHOUT_NUMBERS = ("meta", "fake", "sparse")
ONCE = ("forward", "backward", "backward with a graph", "no_grad", "function mode", "dispatch mode", "autocast")
reached: Counter[str] = Counter()  # how often each kernel was called


def count_kernels() -> None:
    """From now on `reached` says which kernels were called."""
    for module in (native_losses, native_norms):
        module._kernel = _counting(module._kernel)  # type: ignore[attr-defined]


def _counting(kernel_of: Callable[[str], Callable[..., Any]]) -> Callable[[str], Callable[..., Any]]:
    def counted(name: str) -> Callable[..., Any]:
        reached[name] += 1
        return kernel_of(name)

    return counted


@contextlib.contextmanager
def defaults(name: str) -> Iterator[None]:
    if name == "meta":
        with torch.device("meta"):
            yield
        return
    torch.set_default_dtype(getattr(torch, name))
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def made(number: int, seed: int = SEED) -> Call:
    """Make the call of this number and judge it."""
    rng = np.random.default_rng([seed, number])
    torch.manual_seed(number)
    subject = drawn_loss(rng) if rng.integers(2) else drawn_norm(rng)
    disguise, default = pick(rng, DISGUISES), pick(rng, DEFAULTS)
    way = pick(rng, COMMON) if rng.integers(2) else pick(rng, WAYS)
    parts = f"{subject.name} {tuple(subject.x.shape)}, {disguise}, {way}, default {default}"
    x = DISGUISES[disguise](subject.x)
    numbers = subject.x if disguise in WITHOUT_NUMBERS else x.detach().as_subclass(Tensor)
    weights = torch.from_numpy(rng.uniform(0.5, 2, max(1, x.numel())))
    exact = backward(subject.exact, numbers.double().clone(), weights)
    before = reached.total()
    try:
        with defaults(default):
            found = WAYS[way](subject.ours, x, weights)
    except Exception:
        ending = _refusal(subject, way, x, weights, default, traceback.format_exc(limit=-4))
        return Call(parts, ending, reached.total() > before)
    if disguise in WITHOUT_NUMBERS:  # even where PyTorch, asked for gradients in a batch, makes up some
        found = Outcome(*(t if t is None else t.to("meta") for t in found))
    in_c = reached.total() > before
    return Call(parts, _judged(subject, found, exact, way, Rounded(subject.plain, numbers, weights, exact)), in_c)


def _refusal(subject: Subject, way: str, x: Tensor, weights: Tensor, default: str, error: str) -> str:
    """Whether PyTorch's own layer raises an error for this as well."""
    try:
        with defaults(default):
            WAYS[way](subject.pytorchs, x, weights)
    except Exception:
        return "PyTorch refuses too"
    return f"an error where PyTorch has none: {error}"


class Rounded(NamedTuple):
    """The formula in PyTorch's operations for the numbers as they are, beside the exact outcome."""

    plain: Function
    numbers: Tensor
    weights: Tensor
    exact: Outcome

    def error(self, what: str) -> float:
        library, native.library = native.library, lambda: None
        try:
            outcome = backward(self.plain, self.numbers.clone(), self.weights)
        finally:
            native.library = library
        return float((getattr(outcome, what).double() - getattr(self.exact, what)).abs().max())


def _judged(subject: Subject, found: Outcome, exact: Outcome, way: str, rounded: Rounded) -> str:
    pairs = []
    if way in ONCE and _has_numbers(found.value):
        pairs += [("buffer", *both) for both in subject.state()]
    pairs.append(("value", found.value, exact.value))
    if found.slope is not None and exact.slope is not None:
        pairs.append(("slope", found.slope, exact.slope))
    for what, a, b in pairs:
        if a.shape != b.shape:
            return f"{what} of shape {tuple(a.shape)} instead of {tuple(b.shape)}"
        if _has_numbers(a):
            tolerance = subject.rounding[a.dtype]
            a, b = a.detach().as_subclass(Tensor).double(), b.detach().double()
            largest = max(1.0, float(b.nan_to_num().abs().max())) if b.numel() else 1.0
            if torch.allclose(a, b, rtol=0, atol=tolerance * largest, equal_nan=True):
                continue
            if what == "buffer" or not torch.allclose(a, b, rtol=0, atol=4 * rounded.error(what), equal_nan=True):
                return f"{what} is off by {float((a - b).abs().max()):.3g}, where the largest is {largest:.3g}"
    return "agrees" if _has_numbers(found.value) else "same shape"


def _has_numbers(x: Tensor) -> bool:
    fake = isinstance(x, torch._subclasses.FakeTensor)
    return x.is_cpu and not fake and x.layout is torch.strided


# -- many calls, in children -------------------------------------------------------------------------------------------


def child(first: int, last: int, seed: int, log: Path) -> None:
    """Make calls, writing down before each that it begins and after it how it ended."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    count_kernels()
    with log.open("a") as file:
        for number in range(first, last):
            print(json.dumps([number]), file=file, flush=True)
            call = made(number, seed)
            print(json.dumps([number, *call]), file=file, flush=True)


def fuzz(calls: int, seed: int = SEED) -> tuple[Counter[str], list[str]]:
    """Endings by name, those that reached a kernel apart; and what was wrong."""
    endings: Counter[str] = Counter()
    wrong: list[str] = []
    first = 0
    while first < calls:
        last = min(first + CHUNK, calls)
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"
            command = [sys.executable, __file__, "--child", str(first), str(last), "--seed", str(seed), "--log", log]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            lines = [json.loads(line) for line in log.read_text().splitlines()]
        for number, parts, ending, in_c in (line for line in lines if len(line) > 1):
            endings[ending if ending in FINE else "wrong"] += 1
            endings["reached a kernel"] += in_c
            if ending not in FINE:
                wrong.append(f"call {number}: {parts}: {ending}")
        first = last
        if done.returncode:
            first = lines[-1][0] + 1
            endings["crashed"] += 1
            wrong.append(f"call {first - 1}: exit code {done.returncode}\n{done.stderr[-1500:]}")
    return endings, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", type=int, metavar="CALL", help="make this call alone, in this process")
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child, options.seed, options.log)
        return
    if options.only is not None:
        count_kernels()
        print(made(options.only, options.seed), dict(reached))
        return
    library = native.library()
    print(f"torch {torch.__version__}, {Path(library._name).name.partition('.')[0] if library else 'no kernels'}")
    endings, wrong = fuzz(options.calls, options.seed)
    for name in (*FINE, "reached a kernel", "wrong", "crashed"):
        print(f"{endings[name]:6d} {name}")
    for line in wrong:
        print(line)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
