"""Which networks can be taken elsewhere: every network with every norm, and every head, in each of four ways.

    python benchmarks/exports.py [--networks cnn_small …] [--norms batch …]

Each is exported from a batch of eight images with the batch size left open, then run on three; `ok` means that the
logits were the network's own to within 1e-5 of the largest of them. Prints Markdown tables. Needs onnx, onnxscript
and onnxruntime.
"""

from __future__ import annotations

import argparse
import io
import logging
import sys
import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

from equipoise.core import cards
from equipoise.models import create_model
from equipoise.norms import set_example_weight

# one member of each has a name of its own
FAMILIES = ("cifar_resnet", "wide_resnet", "densenet", "nasnet_a", "resnet", "resnext", "shufflenet_v2")
NETWORKS = tuple(card.name for card in cards("model") if card.name not in FAMILIES)
NORMS = {
    "batch": "batch",
    "ghost": "ghost(ghost_size=4)",
    "batch_group": "batch_group(groups=4, examples=2)",
    "group": "group(groups=4)",
    "batch_renorm": "batch_renorm",
}
HEADS = tuple(card.name for card in cards("head"))
TOLERANCE = 1e-5


def example(n: int, seed: int = 0) -> Tensor:
    """n images that ResNet-12 and ResNet-50, which want larger ones, can still take."""
    return torch.randn(n, 3, 32, 32, generator=torch.Generator().manual_seed(seed))


def network(name: str, norm: str = "batch", head: str = "linear", example_weight: float = 0.0) -> nn.Module:
    """Ready for inference, with moving averages that are not those of a new network."""
    torch.manual_seed(0)
    made = create_model(name, 3, norm=NORMS.get(norm, norm), head=head)
    with torch.no_grad():
        made(example(8, seed=1))
    if example_weight:
        set_example_weight(made, example_weight)
    return made.eval().requires_grad_(False)


def by_export(module: nn.Module, example: Tensor, other: Tensor) -> Tensor:
    return torch.export.export(
        module, (example,), dynamic_shapes=({0: torch.export.Dim("batch", max=2**31)},)
    ).module()(other)


def by_onnx(module: nn.Module, example: Tensor, other: Tensor) -> Tensor:
    import onnxruntime

    shapes = ({0: torch.export.Dim("batch", max=2**31)},)
    program = torch.onnx.export(module, (example,), dynamo=True, dynamic_shapes=shapes, verbose=False)
    assert program is not None
    buffer = io.BytesIO()
    program.save(buffer)
    session = onnxruntime.InferenceSession(buffer.getvalue(), providers=["CPUExecutionProvider"])
    (logits,) = session.run(None, {session.get_inputs()[0].name: other.numpy()})
    return torch.from_numpy(logits)


def by_trace(module: nn.Module, example: Tensor, other: Tensor) -> Tensor:
    return torch.jit.trace(module, example)(other)


def by_compile(module: nn.Module, example: Tensor, other: Tensor) -> Tensor:
    torch.compiler.reset()
    compiled = torch.compile(module, dynamic=True, backend="eager", fullgraph=True)
    compiled(example)
    return compiled(other)


WAYS: dict[str, Callable[[nn.Module, Tensor, Tensor], Tensor]] = {
    "torch.export": by_export,
    "ONNX": by_onnx,
    "jit.trace": by_trace,
    "compile": by_compile,
}


def difference(module: nn.Module, way: str) -> float:
    """How far the exported network's logits are from its own, on a batch of another size, by the largest of them.

    By the largest, since a deep network that was hardly trained has logits of several hundred.
    """
    other = example(3, seed=2)
    with torch.no_grad():
        own = module(other)
        return float((WAYS[way](module, example(8), other) - own).abs().max() / own.abs().max())


def verdict(module: nn.Module, way: str) -> str:
    try:
        apart = difference(module, way)
    except Exception as error:
        print(f"    {way}: {type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
        return "fails"
    return "ok" if apart < TOLERANCE else f"off by {apart:.0e}"


def table(title: str, rows: dict[str, Callable[[], nn.Module]]) -> None:
    print(f"| {title} | {' | '.join(WAYS)} |\n|---|{'---|' * len(WAYS)}")
    for name, make in rows.items():
        module = make()
        print(f"| {name} | {' | '.join(verdict(module, way) for way in WAYS)} |", flush=True)
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="*", default=NETWORKS)
    parser.add_argument("--norms", nargs="*", default=NORMS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    pairs = [(name, norm) for name in arguments.networks for norm in arguments.norms]
    table("network, norm", {f"{name}, {norm}": lambda n=name, m=norm: network(n, m) for name, norm in pairs})
    small = "cnn_small(width=4)"
    table("head", {head: lambda h=head: network(small, head=h) for head in HEADS})
    table("example weighing", {norm: lambda m=norm: network(small, m, example_weight=0.3) for norm in arguments.norms})


if __name__ == "__main__":
    main()
