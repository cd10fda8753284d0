"""What methods share that judge a step by balanced images: the step tried out, and the loss on such images after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ...core import Batch
from ._pool import Pool

if TYPE_CHECKING:
    from ..loop import Run

Parameters = Mapping[str, Tensor]


def virtual_step(network: nn.Module, loss: Tensor, lr: Tensor | float) -> Parameters:
    """θ − lr · ∂loss/∂θ for every trained parameter of `network`, differentiable in all that `loss` is made of."""
    parameters = {name: p for name, p in network.named_parameters() if p.requires_grad}
    # a parameter that the loss does not reach stays where it is
    gradients = torch.autograd.grad(loss, list(parameters.values()), create_graph=True, materialize_grads=True)
    return {name: p - lr * g for (name, p), g in zip(parameters.items(), gradients, strict=True)}


def logits_with(network: nn.Module, parameters: Parameters, inputs: Tensor) -> Tensor:
    """What `network` gives with other parameters; its moving statistics stay as they are."""
    buffers = {name: buffer.clone() for name, buffer in network.named_buffers()}
    logits: Tensor = functional_call(network, {**parameters, **buffers}, (inputs,))
    return logits


def meta_pool(run: Run) -> Pool:
    """Where balanced images come from: validation data, or training data if there is none."""
    return Pool(run.task.valid if len(run.task.valid) else run.task.train, torch.ones(run.task.num_classes))


def meta_loss(run: Run, parameters: Parameters, batch: Batch) -> Tensor:
    """The mean loss of a balanced batch with other parameters of the network."""
    with run.precision():
        logits = logits_with(run.network, parameters, batch.inputs)
    return run.objective.loss.per_sample(logits, batch.target).mean()
