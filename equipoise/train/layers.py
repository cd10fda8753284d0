"""What a trained network makes of images on the way from its first layer to its head."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..core import Output
from ..data import Split
from ..models import Network
from .loop import Run
from .predict import EVALUATION_BATCH

FEATURES = "features"  # what feeds the head, the last layer of all


class Activations(NamedTuple):
    """A batch on its way, layer by layer, the last one `FEATURES`.

    `layers`: of each layer's output (N, …) what was asked for. `nonzero`: the share of its values that are not
    exactly 0.
    """

    layers: dict[str, Tensor]
    nonzero: dict[str, Tensor]
    output: Output


def layers_of(network: Network) -> dict[str, nn.Module]:
    """The layers worth looking at, by name: of each stage its blocks, or the stage itself where it has none.

    A block is a part of a sequence that has parts of its own. What follows a stage's last block (the last norm of a
    pre-activation network) ends in a layer named as the stage. A stage without weights, such as a pooling, is no layer.

    >>> from equipoise.models import create_model
    >>> list(layers_of(create_model("cnn_small", num_classes=3)))
    ['stem', 'stage1', 'stage2', 'stage3']
    >>> list(layers_of(create_model("cifar_resnet(depth=8)", num_classes=3)))
    ['stem', 'stage1.0', 'stage2.0', 'stage3.0']
    """
    layers: dict[str, nn.Module] = {}
    for name in network.stages:
        stage = network.get_submodule(name)
        if not any(True for _ in stage.parameters()):
            continue
        parts = list(stage.named_children()) if isinstance(stage, nn.Sequential) else []
        blocks = [(f"{name}.{inner}", part) for inner, part in parts if any(True for _ in part.children())]
        layers.update(blocks)
        if not blocks or blocks[-1][1] is not parts[-1][1]:
            layers[name] = stage
    return layers


def pooled(x: Tensor) -> Tensor:
    """Maps (N, c, h, w) and tokens (N, t, c) by their mean over positions, vectors as they are: (N, c)."""
    return x.mean((2, 3)) if x.dim() == 4 else x.mean(1) if x.dim() == 3 else x.flatten(1)


@torch.no_grad()
def activations(
    run: Run, split: Split, keep: Callable[[Tensor], Tensor] = pooled, batch_size: int = EVALUATION_BATCH
) -> Iterator[Activations]:
    """The activations of the trained network of `run` on the images of `split`, a batch at a time.

    `keep` takes from each layer's output what is wanted as soon as it is there, so that no more than one whole map is
    held, and none is changed by a later layer.
    """
    network = run.evaluated.eval()
    for images in split.images.split(batch_size):
        batch = Activations({}, {}, Output(torch.empty(0)))
        with ExitStack() as hooks, run.precision():
            for name, layer in layers_of(network).items():
                hooks.enter_context(layer.register_forward_hook(_noting(batch, name, keep)))
            out = network.output(run.inputs(images.to(run.device)))
        if out.features is not None:
            _note(batch, FEATURES, out.features, keep)
        yield batch._replace(output=Output(run.objective.loss.link(out.logits.float()), out.features))


def _noting(batch: Activations, name: str, keep: Callable[[Tensor], Tensor]) -> Callable[..., None]:
    def hook(module: nn.Module, args: Any, out: Any) -> None:
        if isinstance(out, Tensor) and out.dim() > 1:
            _note(batch, name, out, keep)

    return hook


def _note(batch: Activations, name: str, x: Tensor, keep: Callable[[Tensor], Tensor]) -> None:
    batch.layers[name] = keep(x.float())
    batch.nonzero[name] = x.count_nonzero() / x.numel()
